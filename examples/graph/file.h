// A graph in a file: its two arrays as they lie in memory, each at a multiple of 4 KiB.
//
//   header: magic, vertices, half edges (8 bytes each) · offsets · neighbours
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "common/options.h"
#include "graph/csr.h"

namespace examples {

struct GraphFileLayout {
  static constexpr uint64_t kMagic = 0x3168706172677073u;
  static constexpr uint64_t kAlignment_bytes = 4096;

  GraphFileLayout(uint64_t vertices, uint64_t half_edges)
      : offsets_bytes((vertices + 1) * sizeof(uint64_t)),
        neighbours_bytes(half_edges * sizeof(Vertex)),
        neighbours_at((offsets_at + offsets_bytes + kAlignment_bytes - 1) / kAlignment_bytes *
                      kAlignment_bytes) {}

  uint64_t end() const { return neighbours_at + neighbours_bytes; }

  const uint64_t offsets_at = kAlignment_bytes;
  const uint64_t offsets_bytes;
  const uint64_t neighbours_bytes;
  const uint64_t neighbours_at;
};

// Calls transfer(address, bytes, position) -> bytes transferred, piece by piece.
template <class Transfer>
void transfer_all(char* data, uint64_t bytes, uint64_t position, const std::string& path, Transfer transfer) {
  constexpr uint64_t kPieceBytes = 8 << 20;
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t now =
        transfer(data + done, std::min(kPieceBytes, bytes - done), static_cast<off_t>(position + done));
    if (now <= 0) fail("input or output error on " + path);
    done += static_cast<uint64_t>(now);
  }
}

inline void save_graph(const Graph& graph, const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) fail("cannot write " + path);
  const auto put = [&](const void* data, uint64_t bytes, uint64_t position) {
    transfer_all(static_cast<char*>(const_cast<void*>(data)), bytes, position, path,
                 [&](char* p, uint64_t n, off_t at) { return pwrite(file, p, n, at); });
  };
  const GraphFileLayout layout(graph.vertices, graph.half_edges);
  const uint64_t header[3] = {GraphFileLayout::kMagic, graph.vertices, graph.half_edges};
  put(header, sizeof header, 0);
  put(graph.offsets, layout.offsets_bytes, layout.offsets_at);
  put(graph.neighbours, layout.neighbours_bytes, layout.neighbours_at);
  if (fsync(file) != 0 || close(file) != 0) fail("cannot write " + path);
}

// `map`: the arrays are a shared mapping of the file; otherwise they are read into memory.
inline Graph load_graph(const std::string& path, bool map) {
  const int file = open(path.c_str(), O_RDONLY);
  uint64_t header[3];
  if (file < 0 || pread(file, header, sizeof header, 0) != sizeof header ||
      header[0] != GraphFileLayout::kMagic)
    fail(path + " is no graph");
  Graph graph;
  graph.vertices = header[1];
  graph.half_edges = header[2];
  const GraphFileLayout layout(graph.vertices, graph.half_edges);
  if (map) {
    void* const mapped = mmap(nullptr, layout.end(), PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) fail("cannot map " + path);
    const uint64_t bytes = layout.end();
    graph.storage.emplace_back(mapped, [bytes](void* p) { munmap(p, bytes); });
    graph.offsets = reinterpret_cast<uint64_t*>(static_cast<char*>(mapped) + layout.offsets_at);
    graph.neighbours = reinterpret_cast<Vertex*>(static_cast<char*>(mapped) + layout.neighbours_at);
  } else {
    const auto get = [&](void* data, uint64_t bytes, uint64_t position) {
      transfer_all(static_cast<char*>(data), bytes, position, path,
                   [&](char* p, uint64_t n, off_t at) { return pread(file, p, n, at); });
    };
    graph.offsets = graph.allocate<uint64_t>(graph.vertices + 1);
    graph.neighbours = graph.allocate<Vertex>(graph.half_edges);
    get(graph.offsets, layout.offsets_bytes, layout.offsets_at);
    get(graph.neighbours, layout.neighbours_bytes, layout.neighbours_at);
  }
  close(file);
  return graph;
}

}  // namespace examples
