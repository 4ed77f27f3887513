// How the program learns, by a thread, that asynchronous requests are over: the thread comes to us first, and what was read is copied.
//
// Threads: any. Lifetime: a notification holds its shadow until its thread runs. Limits: the attributes of such threads may be managed; of
// kAttributesMax different ones that are there is a copy for as long as the process lives, more are taken for none.
#pragma once

#include <signal.h>

#include "front/interpose/shadow.h"

namespace spw::interpose {

inline constexpr unsigned kAttributesMax = 16;

// An event that libc's threads read when they notify of `shadow`; of all that is over where it stands for no request.
void notify_through(Shadow& shadow, sigevent* event);
// It will not be notified of.
void forget_notification(Shadow& shadow);
// Attributes that libc's threads can read.
void make_attributes_native(sigevent* event);

}  // namespace spw::interpose
