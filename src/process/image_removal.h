// Who removes a spill image (store/rbd/spill_image.h) when the process that made it has ended.
//
// Not the process itself: it may end by _exit(), by a signal that nobody handles, by SIGKILL or with a line of ours at
// any place; and where it ends by exit(), its other threads and its last destructors still use managed memory. It is
// `spillway` that does, started beside the process before the image is made (platform/successor.h), which sleeps until
// the process has ended, however that was. Before it sleeps it has what others have left behind in the pool removed: by
// a process of its own, which ends, since what librbd takes of memory would stay. Where all of these are ended, too, or
// the machine is, the next run on the pool removes the image, or `spillway check`.
//
// Threads: any. Limits: in the first process of a container, and where the tool does not lie where it is installed
// beside the library, nobody can be asked.
#pragma once

#include <string>

namespace spw::process {

// The tool's own command for this; not for people. Behind it the store's name and the image's.
inline constexpr const char* kRemoveAtEndCommand = "remove-at-end";

// `store`: its name, with parameters. False: nobody does; a warning says why.
bool have_removed_at_end(const std::string& store, const std::string& image);

}  // namespace spw::process
