// DIPU_MEM_CHECK=1: memory that is still in use at exit, freed twice, or used without being allocated is reported.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "export.h"

namespace dipu {

extern DIPU_API constinit std::atomic<bool> memory_check_wanted;

inline bool checking_memory() noexcept { return memory_check_wanted.load(std::memory_order_relaxed); }

// Switches the check on for the rest of the process: stacks are recorded from now on, and a report is written at exit.
void start_memory_check();

// Notes a fault once for each text, and prints it on stderr.
void note_memory_fault(const std::string& text);

// Notes a fault unless all `bytes` from `pointer` lie in one block that is allocated; `use` e.g. "copy to the device".
void check_memory(const void* pointer, std::size_t bytes, const char* use);

// The faults so far, each a text of several lines.
DIPU_API std::vector<std::string> memory_faults();

// The blocks that are allocated now, with the stacks of their allocation, as a readable text; empty when there are none.
DIPU_API std::string memory_in_use();

// Turns recorded stacks into text while Python still can; the report at exit comes after it has ended.
DIPU_API void settle_stacks();

}  // namespace dipu
