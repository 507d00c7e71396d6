// Faults in the use of device memory, and the report at exit.
#include "memory_check.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>

#include "allocator.h"
#include "device/device.h"
#include "readable.h"

namespace dipu {

constinit std::atomic<bool> memory_check_wanted{false};

namespace {

struct Faults {
    std::mutex mutex;
    std::vector<std::string> texts;
    std::set<std::string> known;
};

Faults& faults() {
    static Faults& value = *new Faults;
    return value;
}

void write_stack(std::ostream& out, const std::shared_ptr<Stack>& stack) {
    const std::vector<Frame> frames = stack == nullptr ? std::vector<Frame>() : stack->frames();
    if (frames.empty()) {
        out << "    no Python code was running\n";
    }
    for (const Frame& frame : frames) {
        out << "    " << frame.file << ":" << frame.line << " " << frame.function << "\n";
    }
}

// e.g. "4.00 KiB (4000 bytes asked for) at 0x7f0000000000 on dipu:0, stream 0"
void write_block(std::ostream& out, c10::DeviceIndex device, const BlockState& block) {
    out << readable(block.bytes) << " (" << block.requested << " bytes asked for) at "
        << reinterpret_cast<void*>(block.address) << " on dipu:" << static_cast<int>(device) << ", stream "
        << block.stream << "\n";
}

void report_at_exit() {
    const std::string in_use = memory_in_use();
    const std::size_t faults = memory_faults().size();
    if (!in_use.empty()) {
        std::fprintf(stderr, "dipu memory check: memory is still in use at exit\n%s", in_use.c_str());
    }
    std::fprintf(stderr, "dipu memory check: %s, %zu fault%s\n", in_use.empty() ? "no leak" : "leaks", faults,
                 faults == 1 ? "" : "s");
}

}  // namespace

void start_memory_check() {
    static std::once_flag once;
    std::call_once(once, [] { std::atexit(&report_at_exit); });
    stacks_wanted.store(true, std::memory_order_relaxed);
    memory_check_wanted.store(true, std::memory_order_relaxed);
}

void note_memory_fault(const std::string& text) {
    Faults& all = faults();
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (all.known.insert(text).second) {
        all.texts.push_back(text);
        std::fprintf(stderr, "dipu memory check: %s", text.c_str());
    }
}

void check_memory(const void* pointer, std::size_t bytes, const char* use) {
    if (bytes == 0) {
        return;
    }
    const std::optional<OwnedBlock> block = block_of_pointer(pointer);
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    std::ostringstream text;
    if (!block.has_value()) {
        text << use << ": " << pointer << " lies in no memory of the allocator; used at\n";
    } else if (!block->state.allocated()) {
        text << use << ": " << pointer << " was freed: ";
        write_block(text, block->device, block->state);
        text << "  allocated at\n";
        write_stack(text, block->state.stack);
        text << "  used at\n";
    } else if (address + bytes > block->state.address + block->state.bytes) {
        text << use << ": " << bytes << " bytes from " << pointer << " reach beyond ";
        write_block(text, block->device, block->state);
        text << "  used at\n";
    } else {
        return;
    }
    write_stack(text, Stack::captured());
    note_memory_fault(text.str());
}

std::vector<std::string> memory_faults() {
    Faults& all = faults();
    const std::lock_guard<std::mutex> lock(all.mutex);
    return all.texts;
}

std::string memory_in_use() {
    std::ostringstream text;
    for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
        for (const BlockState& block : memory_snapshot(device)) {
            if (block.allocated()) {
                text << "  ";
                write_block(text, device, block);
                write_stack(text, block.stack);
            }
        }
    }
    return text.str();
}

void settle_stacks() {
    stacks_wanted.store(false, std::memory_order_relaxed);
    for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
        for (const BlockState& block : memory_snapshot(device)) {
            if (block.stack != nullptr) {
                block.stack->frames();
            }
        }
    }
    Stack::close();
}

}  // namespace dipu
