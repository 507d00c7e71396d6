// Tests of droplet's memory: allocation, copies, and what is refused.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "../../../runtime_cpp/contract/address_sanitizer.h"
#include "check.h"
#include "tang_runtime.h"

namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

void* allocated(size_t bytes) {
    void* pointer = nullptr;
    CHECK(tangMalloc(&pointer, bytes) == tangSuccess);
    CHECK(pointer != nullptr);
    return pointer;
}

void allocation_is_aligned_and_counted() {
    size_t free_before = 0;
    size_t total = 0;
    CHECK(tangMemGetInfo(&free_before, &total) == tangSuccess);
    CHECK(free_before == total);
    void* first = allocated(1);
    void* second = allocated(513);
    CHECK(reinterpret_cast<uintptr_t>(first) % 512 == 0);
    CHECK(reinterpret_cast<uintptr_t>(second) % 512 == 0);
    size_t free_after = 0;
    CHECK(tangMemGetInfo(&free_after, &total) == tangSuccess);
    CHECK(free_before - free_after >= 512 + 1024);
    CHECK(tangFree(first) == tangSuccess);
    CHECK(tangFree(second) == tangSuccess);
    CHECK(tangMemGetInfo(&free_after, &total) == tangSuccess);
    CHECK(free_after == free_before);
    void* nothing = &total;
    CHECK(tangMalloc(&nothing, 0) == tangSuccess && nothing == nullptr);
    CHECK(tangFree(nullptr) == tangSuccess);
}

// Run with 16 MiB per device.
void full_memory_is_an_error_that_passes() {
    std::vector<void*> blocks;
    for (int i = 0; i < 15; ++i) blocks.push_back(allocated(kMegabyte));
    void* pointer = nullptr;
    CHECK(tangMalloc(&pointer, 2 * kMegabyte) == tangErrorMemoryAllocation);
    CHECK(pointer == nullptr);
    CHECK_SAYS(tangGetLastErrorMessage(), "DROPLET_MEMORY_MB");
    CHECK(tangGetLastError() == tangErrorMemoryAllocation);
    CHECK(tangGetLastError() == tangSuccess);
    CHECK(tangMalloc(&pointer, ~size_t{0}) == tangErrorMemoryAllocation);
    // Two neighbours, freed in either order, are one block again.
    CHECK(tangFree(blocks[4]) == tangSuccess);
    CHECK(tangFree(blocks[6]) == tangSuccess);
    CHECK(tangFree(blocks[5]) == tangSuccess);
    pointer = allocated(3 * kMegabyte);
    CHECK(pointer == blocks[4]);
    CHECK(tangFree(pointer) == tangSuccess);
    for (const size_t i : {0, 1, 2, 3, 7, 8, 9, 10, 11, 12, 13, 14}) CHECK(tangFree(blocks[i]) == tangSuccess);
    CHECK(tangFree(allocated(15 * kMegabyte)) == tangSuccess);
}

void copies_move_bytes() {
    const std::vector<uint8_t> source = {1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<uint8_t> result(8, 0);
    auto* a = static_cast<char*>(allocated(8));
    auto* b = static_cast<char*>(allocated(8));
    CHECK(tangMemcpyAsync(a, source.data(), 8, tangMemcpyHostToDevice, nullptr) == tangSuccess);
    CHECK(tangMemcpyAsync(b, a, 8, tangMemcpyDeviceToDevice, nullptr) == tangSuccess);
    CHECK(tangMemsetAsync(b + 2, 0xAB, 3, nullptr) == tangSuccess);
    CHECK(tangMemcpy(result.data(), b, 8, tangMemcpyDefault) == tangSuccess);
    CHECK((result == std::vector<uint8_t>{1, 2, 0xAB, 0xAB, 0xAB, 6, 7, 8}));
    CHECK(tangFree(a) == tangSuccess);
    CHECK(tangFree(b) == tangSuccess);
}

void bad_copies_are_refused() {
    std::vector<uint8_t> host(4096);
    auto* device = static_cast<char*>(allocated(1000));
    CHECK(tangMemcpy(device, host.data(), 1001, tangMemcpyHostToDevice) == tangErrorInvalidValue);
    CHECK_SAYS(tangGetLastErrorMessage(), "one live allocation");
    CHECK(tangMemcpy(device + 999, host.data(), 2, tangMemcpyHostToDevice) == tangErrorInvalidValue);
    CHECK(tangMemcpy(host.data(), host.data() + 8, 8, tangMemcpyHostToDevice) == tangErrorInvalidValue);
    CHECK_SAYS(tangGetLastErrorMessage(), "destination is host memory");
    CHECK(tangMemcpy(nullptr, host.data(), 8, tangMemcpyDefault) == tangErrorInvalidValue);
    CHECK(tangMemcpy(nullptr, nullptr, 0, tangMemcpyDefault) == tangSuccess);
    CHECK(tangFree(device + 1) == tangErrorInvalidValue);
    CHECK(tangFree(host.data()) == tangErrorInvalidValue);
    CHECK(tangFree(device) == tangSuccess);
    CHECK(tangFree(device) == tangErrorInvalidValue);
    CHECK(tangMemcpy(host.data(), device, 8, tangMemcpyDeviceToHost) == tangErrorInvalidValue);
}

void devices_have_their_own_memory() {
    int32_t count = 0;
    CHECK(tangGetDeviceCount(&count) == tangSuccess && count == 2);
    void* on_first = allocated(64);
    CHECK(tangSetDevice(1) == tangSuccess);
    void* on_second = allocated(64);
    tangPointerAttributes_t attributes = {};
    CHECK(tangPointerGetAttributes(&attributes, static_cast<char*>(on_second) + 5) == tangSuccess);
    CHECK(attributes.type == tangMemoryTypeDevice && attributes.device == 1);
    CHECK(attributes.base == on_second && attributes.allocation_bytes == 64);
    CHECK(tangPointerGetAttributes(&attributes, &count) == tangSuccess);
    CHECK(attributes.type == tangMemoryTypeUnregistered && attributes.device == -1);
    const int64_t sent = 0x123456789;
    int64_t received = 0;
    CHECK(tangMemcpy(on_first, &sent, sizeof sent, tangMemcpyHostToDevice) == tangSuccess);
    CHECK(tangMemcpyPeerAsync(on_second, 1, on_first, 0, sizeof sent, nullptr) == tangSuccess);
    CHECK(tangMemcpyPeerAsync(on_second, 0, on_first, 0, sizeof sent, nullptr) == tangErrorInvalidValue);
    CHECK(tangMemcpy(&received, on_second, sizeof sent, tangMemcpyDeviceToHost) == tangSuccess);
    CHECK(received == sent);
    CHECK(tangSetDevice(2) == tangErrorInvalidDevice);
    CHECK_SAYS(tangGetLastErrorMessage(), "DROPLET_DEVICES");
    int32_t current = -1;
    CHECK(tangGetDevice(&current) == tangSuccess && current == 1);
    std::thread([] {
        int32_t device = -1;
        CHECK(tangGetDevice(&device) == tangSuccess && device == 0);
    }).join();
    CHECK(tangFree(on_first) == tangSuccess);
    CHECK(tangFree(on_second) == tangSuccess);
}

// The process is expected to end here.
void host_read_of_device_memory() {
    auto* device = static_cast<volatile char*>(allocated(64));
    std::fprintf(stderr, "%d\n", device[0]);
}

void fork_is_reported() {
    void* pointer = allocated(64);
    const pid_t child = fork();
    if (child == 0) {
        const bool refused = tangDeviceSynchronize() == tangErrorInitialization &&
                             std::strstr(tangGetLastErrorMessage(), "spawn") != nullptr &&
                             tangMalloc(&pointer, 1) == tangErrorInitialization &&
                             tangLaunch(nullptr, [](const void*) {}, nullptr, 0) == tangErrorInitialization;
        _exit(refused ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(tangFree(pointer) == tangSuccess);
}

// Run with DROPLET_POISON=1.
void poison_fills_fresh_memory() {
    void* pointer = allocated(4);
    float value = 0;
    CHECK(tangMemcpy(&value, pointer, 4, tangMemcpyDeviceToHost) == tangSuccess);
    CHECK(value != value);
    CHECK(tangFree(pointer) == tangSuccess);
}

// Run with a setting that cannot be read: every use of the chip fails and says which.
void bad_setting_is_reported() {
    for (int i = 0; i < 2; ++i) {
        CHECK(tangDeviceSynchronize() == tangErrorInitialization);
        std::printf("%s\n", tangGetLastErrorMessage());
    }
}

// Only AddressSanitizer can see these: a kernel reads, or writes, outside of an allocation.
void read_in_kernel(const char* memory) {
    tangLaunch(
        nullptr, [](const void* place) { static_cast<void>(**static_cast<const volatile char* const*>(place)); },
        &memory, sizeof memory);
    tangDeviceSynchronize();
}

char* in_kernels(void* pointer) { return static_cast<char*>(tangDeviceAddress(pointer)); }

void kernel_beyond_its_memory() {
    struct Args {
        char* memory;
    } const args = {in_kernels(allocated(100))};
    tangLaunch(
        nullptr, [](const void* block) { static_cast<const Args*>(block)->memory[100] = 1; }, &args, sizeof args);
    tangDeviceSynchronize();
}

void kernel_reads_before_all_memory() { read_in_kernel(in_kernels(allocated(100)) - 40960); }

void kernel_reads_far_behind() {
    const char* const first = in_kernels(allocated(100));
    allocated(100000);
    read_in_kernel(first + 100 + 40960);
}

void kernel_reads_freed_memory() {
    void* const freed = allocated(100);
    CHECK(tangFree(freed) == tangSuccess);
    CHECK(allocated(100) != freed || !diopi::kAddressSanitizer);
    read_in_kernel(in_kernels(freed));
}

void kernel_reads_behind_pinned_memory() {
    void* pointer = nullptr;
    CHECK(tangHostAlloc(&pointer, 5000) == tangSuccess);
    read_in_kernel(static_cast<char*>(pointer) + 5000 + 40960);
}

void threads_share_the_pool() {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([t] {
            for (int i = 0; i < 200; ++i) {
                const int64_t sent = t * 1000 + i;
                int64_t received = -1;
                void* pointer = allocated(8 + static_cast<size_t>(i) * 64);
                CHECK(tangMemcpy(pointer, &sent, sizeof sent, tangMemcpyHostToDevice) == tangSuccess);
                CHECK(tangMemcpy(&received, pointer, sizeof sent, tangMemcpyDeviceToHost) == tangSuccess);
                CHECK(received == sent);
                CHECK(tangFree(pointer) == tangSuccess);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    CHECK(tangMemGetInfo(&free_bytes, &total_bytes) == tangSuccess);
    CHECK(free_bytes == total_bytes);
}

constexpr NamedTest kTests[] = {
    {"allocation_is_aligned_and_counted", allocation_is_aligned_and_counted},
    {"full_memory_is_an_error_that_passes", full_memory_is_an_error_that_passes},
    {"copies_move_bytes", copies_move_bytes},
    {"bad_copies_are_refused", bad_copies_are_refused},
    {"devices_have_their_own_memory", devices_have_their_own_memory},
    {"host_read_of_device_memory", host_read_of_device_memory},
    {"fork_is_reported", fork_is_reported},
    {"poison_fills_fresh_memory", poison_fills_fresh_memory},
    {"bad_setting_is_reported", bad_setting_is_reported},
    {"kernel_beyond_its_memory", kernel_beyond_its_memory},
    {"kernel_reads_before_all_memory", kernel_reads_before_all_memory},
    {"kernel_reads_far_behind", kernel_reads_far_behind},
    {"kernel_reads_freed_memory", kernel_reads_freed_memory},
    {"kernel_reads_behind_pinned_memory", kernel_reads_behind_pinned_memory},
    {"threads_share_the_pool", threads_share_the_pool},
};

}  // namespace

int main(int argc, char** argv) { return run_named_test(kTests, argc, argv); }
