// Who does a partition's work: the door between clients and owners.
//
//   combining  (combining.h)  whichever client holds the partition's
//       combiner lock serves everybody's requests; no thread burns a core
//   dedicated  (dedicated.h)  server threads own partitions; clients send requests and sleep
//
// Both sleep on Request::state after a bounded spin: kPosted -> kAsleep (client, CAS) -> kAnswered (owner, exchange).
#pragma once

#include <cstdint>

#include "cache/partition/partition.h"
#include "cache/partition/request.h"

namespace spw::cache {

class Delegate {
 public:
  virtual ~Delegate() = default;
  // Has the request served by the partition's owner; returns with the answer.
  virtual void execute(Partition& partition, Request& request) = 0;
  // The same, if nobody has to be waited for, in a thread that others cannot do without meanwhile
  // (access/mapped/fault_server.h): who owns the partition may wait for that very thread. False: nothing was asked; the
  // request is the client's as before.
  virtual bool try_execute(Partition& partition, Request& request) = 0;
  // Waits until the partition's transfers have moved on since `request` was answered with a snapshot, at most
  // timeout_ns. Its answer's queue is the one to wait in.
  virtual void await_progress(Partition& partition, const Request& request, uint64_t timeout_ns) = 0;
  // Whether a frame that read-ahead fills becomes resident without the waiters' help.
  virtual bool owners_run_by_themselves() const = 0;
};

// Client: waits for the answer of a posted request.
void await_answer(Request& request);
// Owner: hands the request back. True when its client sleeps and has to be woken through request.state.
bool hand_back(Request& request);

}  // namespace spw::cache
