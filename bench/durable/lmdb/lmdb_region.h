/* LMDB with its data in a persistent region: mdb.c, compiled with -fspillway-durable and these functions in place of
 * mmap(), munmap() and msync(). tests/endtoend and bench/durable.py get its source from Debian's package
 * (bench/harness/lmdb.py); nothing of it changes.
 *
 * The map of a database DATA is one object of the region in the file DATA.region. LMDB makes
 * and reads DATA itself when it opens a database, and takes from it the page size and that
 * it is one; the meta pages that count are those of the map. What DATA holds when the region
 * is new is copied into it, so a database that LMDB has made without this is taken over.
 *
 * LMDB's writer mutex, which is locked from mdb_txn_begin() to mdb_txn_commit() or
 * mdb_txn_abort(), makes a write transaction a durable section: when the commit
 * returns it is durable, and a crash leaves nothing of one that did not get there.
 *
 * What will hurt you
 *   - Open with MDB_WRITEMAP, else LMDB writes to the file itself; without it the map is refused. Not with MDB_FIXEDMAP
 *     or MDB_NOLOCK: without the mutex there are no sections.
 *   - A reader takes no lock, so it may see a transaction that is just being committed and that a crash will undo.
 *   - The map's size is chosen when the region is made: it can be opened with less, not with more.
 *   - One environment of a process at a time, and one process: regions are not shared.
 * Syncing the map is nothing to LMDB any more, whether or not it is opened with MDB_NOSYNC. */
#ifndef BENCH_DURABLE_LMDB_LMDB_REGION_H
#define BENCH_DURABLE_LMDB_LMDB_REGION_H

#include <spillway/durable.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of regions that are opened from now on. A capacity of 0 is chosen by the map's size. */
extern struct spw_durable_options lmdb_region_options;
/* That of the open environment. NULL: there is none. */
spw_durable* lmdb_region(void);

#ifdef __cplusplus
}
#endif

#endif
