// How the program learns, by a thread, that asynchronous requests are
// over: the thread comes to us first, and what was read is copied.
//
// Threads: any. Lifetime: a notification holds its shadow until its thread runs. Limits: the attributes of such threads
// may be managed; of kAttributesMax different ones there is a copy for as long as the process lives, more are refused.
#pragma once

#include <signal.h>

#include "libc/aio/shadow.h"

namespace spw::libc {

inline constexpr unsigned kAttributesMax = 16;

// Makes of `event`, whose attributes are native, one that libc's threads
// read when they notify of `shadow`. Before others know the shadow.
void notify_through(Shadow& shadow, sigevent* event);
// It will not be notified of. By the thread that handed it over, or was about to.
void forget_notification(Shadow& shadow);
// Attributes that libc's threads can read. False: there is no room for more.
bool make_attributes_native(sigevent* event);

}  // namespace spw::libc
