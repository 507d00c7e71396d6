// Counts allocations; apart from the scenarios, so that no call of it is inlined into them.
#include <atomic>
#include <cstdlib>
#include <new>

#include "fake_runtime.h"

namespace {

std::atomic<long> counted{0};

}  // namespace

long fake::allocations() { return counted; }

void* operator new(std::size_t bytes) {
    ++counted;
    if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    throw std::bad_alloc();
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    ++counted;
    return std::malloc(bytes == 0 ? 1 : bytes);
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
