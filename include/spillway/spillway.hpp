// C++ over the C API: a region that unmaps itself, an allocator of managed memory, a vector that grows in place on a store. Header only.
//
// Errors: std::system_error with the C API's error and message; std::bad_alloc and std::length_error where containers throw them.
// Threads: as containers of the standard library. Limits: spillway.h's.
#ifndef SPILLWAY_SPILLWAY_HPP
#define SPILLWAY_SPILLWAY_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "spillway/spillway.h"

namespace spillway {

// Throws what a function of the C API that returned `result` complains of.
inline void check(int result) {
  if (result < 0) throw std::system_error(-result, std::generic_category(), spw_error_message());
}

// A region: bytes [offset, offset + length) of a store, or anonymous memory.
class region {
 public:
  region() = default;
  // As spw_map().
  region(const std::string& store, unsigned flags, std::uint64_t offset = 0, std::size_t length = 0,
         std::size_t block_bytes = 0) {
    check(spw_map(store.c_str(), offset, length, flags, block_bytes, &address_));
  }
  explicit region(std::size_t length, std::size_t block_bytes = 0) {
    check(spw_map(nullptr, 0, length, 0, block_bytes, &address_));
  }
  region(region&& other) noexcept : address_(std::exchange(other.address_, nullptr)) {}
  region& operator=(region&& other) noexcept {
    std::swap(address_, other.address_);
    return *this;
  }
  // What cannot be written is lost without a word; unmap() tells.
  ~region() {
    if (address_ && spw_unmap(address_) != 0) (void)spw_unmap_unsaved(address_);
  }

  void unmap() {
    if (!address_) return;
    check(spw_unmap(address_));
    address_ = nullptr;
  }
  void* data() const { return address_; }
  explicit operator bool() const { return address_ != nullptr; }

 private:
  void* address_ = nullptr;
};

// Managed memory for containers: std::vector<T, spillway::allocator<T>>. Allocations of less than `managed_bytes_min` are ordinary
// memory: a managed one takes whole blocks.
template <class T>
class allocator {
 public:
  using value_type = T;
  static constexpr std::size_t managed_bytes_min = 65536;

  allocator() = default;
  template <class U>
  allocator(const allocator<U>&) {}

  T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    const std::size_t bytes = count * sizeof(T);
    if (bytes < managed_bytes_min)
      return static_cast<T*>(::operator new(bytes, std::align_val_t(alignof(T))));
    void* address = nullptr;
    if (spw_map(nullptr, 0, bytes, 0, 0, &address) != 0) throw std::bad_alloc();
    return static_cast<T*>(address);
  }
  void deallocate(T* data, std::size_t count) noexcept {
    if (count * sizeof(T) < managed_bytes_min)
      ::operator delete(data, std::align_val_t(alignof(T)));
    else
      (void)spw_unmap(data);
  }
  template <class U>
  bool operator==(const allocator<U>&) const {
    return true;
  }
};

// Many blocks on their way for one thread: spw_batch_create() and its kin. Requests and what they refer to belong to the caller and stay until they
// are done.
class batch {
 public:
  explicit batch(unsigned in_flight_max) : batch_(spw_batch_create(in_flight_max)) {
    if (!batch_) throw std::system_error(EINVAL, std::generic_category(), spw_error_message());
  }
  batch(batch&& other) noexcept : batch_(std::exchange(other.batch_, nullptr)) {}
  batch& operator=(batch&& other) noexcept {
    std::swap(batch_, other.batch_);
    return *this;
  }
  ~batch() { spw_batch_destroy(batch_); }

  void submit(spw_request* requests, std::size_t count) { check(spw_batch_submit(batch_, requests, count)); }
  std::size_t wait(std::size_t at_least = std::numeric_limits<std::size_t>::max()) { return spw_batch_wait(batch_, at_least); }
  std::size_t in_flight() const { return spw_batch_in_flight(batch_); }

 private:
  spw_batch* batch_ = nullptr;
};

// Elements one after the other that never move: the capacity is reserved as addresses at once, and costs memory and disk only as far as it
// is used. On a store it is there again when it is opened again; its first 4096 bytes hold the size.
template <class T>
class vector {
  static_assert(std::is_trivially_copyable_v<T>,
                "elements live in a file: they hold no pointers and need no destructor");
  static_assert(alignof(T) <= 4096);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  // In anonymous memory.
  explicit vector(std::size_t capacity) : region_(bytes_for(capacity)), capacity_(capacity) { open(); }
  // On a store that has room for `capacity` elements. std::runtime_error when something else is there.
  vector(const std::string& store, std::size_t capacity, unsigned flags = SPW_MAP_SHARED)
      : region_(store, flags, 0, bytes_for(capacity)), capacity_(capacity) {
    open();
  }

  std::size_t size() const { return header_->size; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size() == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& back() { return data_[size() - 1]; }
  iterator begin() { return data_; }
  iterator end() { return data_ + size(); }
  const_iterator begin() const { return data_; }
  const_iterator end() const { return data_ + size(); }

  void push_back(const T& value) {
    const T copy = value;
    grow_to(size() + 1);
    data_[header_->size++] = copy;
  }
  void pop_back() { --header_->size; }
  // New elements are value-initialised.
  void resize(std::size_t size) {
    grow_to(size);
    for (std::size_t i = header_->size; i < size; ++i) data_[i] = T{};
    header_->size = size;
  }
  void clear() { header_->size = 0; }
  // Everything until now survives the program's, and the machine's, sudden end.
  void sync() { check(spw_sync(header_, bytes_for(size()))); }

 private:
  static constexpr std::size_t header_bytes = 4096;
  static constexpr char magic[8] = {'s', 'p', 'w', '.', 'v', 'e', 'c', '1'};
  struct header {
    char magic[8];
    std::uint64_t element_bytes;
    std::uint64_t size;
  };

  static std::size_t bytes_for(std::size_t count) {
    if (count > (std::numeric_limits<std::size_t>::max() / 2) / sizeof(T))
      throw std::length_error("spillway::vector");
    return header_bytes + count * sizeof(T);
  }
  void open() {
    header_ = static_cast<header*>(region_.data());
    data_ = reinterpret_cast<T*>(static_cast<char*>(region_.data()) + header_bytes);
    constexpr header fresh{};
    if (std::memcmp(header_, &fresh, sizeof fresh) == 0) {
      std::memcpy(header_->magic, magic, sizeof magic);
      header_->element_bytes = sizeof(T);
    }
    if (std::memcmp(header_->magic, magic, sizeof magic) != 0 || header_->element_bytes != sizeof(T) ||
        header_->size > capacity_)
      throw std::runtime_error("spillway::vector: the store holds something else, or more");
  }
  void grow_to(std::size_t size) {
    if (size > capacity_) throw std::length_error("spillway::vector: its reserved addresses are used up");
  }

  region region_;
  std::size_t capacity_;
  header* header_ = nullptr;
  T* data_ = nullptr;
};

}  // namespace spillway

#endif
