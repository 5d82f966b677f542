// Waiting for what comes soon, beside whoever else wants the processor.
#pragma once

#include <cstdint>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

namespace msc {

/// Asks for short turns: the thread then takes the processor from threads with longer ones as soon as it wakes, for no larger share of it,
/// but is itself interrupted more often. What it starts later inherits that. Linux 6.12 and later, see sched(7) on the runtime of ordinary threads; elsewhere nothing changes.
inline void preferShortTurns() {
  struct Attributes { // struct sched_attr, in its first version
    uint32_t size = sizeof(Attributes), policy = 0;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime = 0, deadline = 0, period = 0;
  } own;
  constexpr uint64_t shortTurn = 100'000; // ns, the least that there is
  if (syscall(SYS_sched_getattr, 0, &own, sizeof(own), 0) != 0 || own.policy != SCHED_OTHER)
    return;
  own.runtime = shortTurn;
  syscall(SYS_sched_setattr, 0, &own, 0);
}

/// Leaves the processor to others. False: they kept it for longer than ranks of one run need to take turns. Who yields once more then
/// waits as long again; who sleeps until what he waits for has happened goes before those who were busy in the meantime.
inline bool yieldBriefly() {
  constexpr uint64_t longTurn = 6'000'000; // cycles of the time stamp counter, some 2 ms; a clock takes longer than a yield
  const uint64_t before = __rdtsc();
  sched_yield();
  if (__rdtsc() - before < longTurn)
    return true;
  constexpr int often = 16; // some take long at the start of a run, when nobody else is busy
  static thread_local int waits = 0;
  if (++waits == often)
    preferShortTurns();
  return false;
}

} // namespace msc
