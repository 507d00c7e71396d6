// Reserves the chip's address windows with mmap.
#include "address_space.h"

#include <sys/mman.h>

#include <string>

#include "error.h"

namespace droplet {
namespace {

uintptr_t reserve(size_t bytes, int protection) {
    void* window = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (window == MAP_FAILED) {
        throw Error(tangErrorInitialization, "no address space for " + std::to_string(bytes >> 20) +
                                                 " MiB of device memory: lower DROPLET_MEMORY_MB or DROPLET_DEVICES, "
                                                 "or raise the limit that 'ulimit -v' shows");
    }
    return reinterpret_cast<uintptr_t>(window);
}

}  // namespace

AddressSpace::AddressSpace(int32_t devices, size_t memory_bytes)
    : memory_bytes_(memory_bytes),
      span_(static_cast<size_t>(devices) * memory_bytes) {
    base_ = reserve(span_, PROT_NONE);
    try {
        memory_ = reserve(span_, PROT_READ | PROT_WRITE);
    } catch (...) {
        munmap(reinterpret_cast<void*>(base_), span_);
        throw;
    }
}

AddressSpace::~AddressSpace() {
    munmap(reinterpret_cast<void*>(base_), span_);
    munmap(reinterpret_cast<void*>(memory_), span_);
}

}  // namespace droplet
