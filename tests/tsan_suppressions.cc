// What the thread sanitizer is not to report, in every test program: what is so by design, and what it takes for a race
// because it does not see everything. A line names a function of ours that stands in the stack: the sanitizer's own
// names ("eventfd") are printed otherwise than it matches them.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return
      // Stores to a block that is being written: the block is dirty again and is written once more. So are stores to
      // one that is looked through for whether it has to be written.
      "race:spw::cache::Writeback::submit\n"
      "race:spw::store::CompressedStore::do_here\n"
      "race:spw::cache::Writeback::leave_zeros_out\n"
      "race:spw::cache::Writeback::leave_unstored_out\n"
      "race:spw::cache::Writeback::copy_run\n"
      // Who writes to a chunk while it is copied ends its move, and the copy is thrown away.
      "race:spw::store::ChunkMover::copy\n"
      // The runtime closes its descriptors by the system call itself (own_descriptors.h), which the sanitizer does not
      // see: whoever gets the number next seems to race with who had it.
      "race:spw::platform::WakeFd::create\n"
      // Ceph's libraries are not compiled for the sanitizer: it sees what they copy and free, and not by which atomics
      // they hand it from thread to thread.
      "race:libceph-common.so\n"
      "race:librados.so\n"
      "race:librbd.so\n";
}
