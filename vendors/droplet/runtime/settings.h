// Droplet's settings: every environment variable that it reads, once.
//
//   DROPLET_ASYNC=1          each stream is a worker thread (default 0: work runs inside the call that starts it)
//   DROPLET_THREADS=1        how many threads of the host share the loops of a kernel, 1 to 256 (results are the same)
//   DROPLET_SHARE_ALL=1      they share even the shortest loops: to look for races (default 0: where it pays)
//   DROPLET_DEVICES=2        number of devices, 1 to 16
//   DROPLET_MEMORY_MB=4096   memory of each device in MiB, 1 to 1048576
//   DROPLET_POISON=1         fresh and freed memory is filled with 0xFF (NaN in every floating-point type; default 0)
//   DROPLET_FAULT=plan       faults on demand, see fault.h (default none)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace droplet {

struct Settings {
    bool async = false;
    int32_t threads = 1;
    bool share_all = false;
    int32_t devices = 2;
    size_t memory_bytes = size_t{4096} << 20;  // of each device
    bool poison = false;
    std::string fault_plan;
};

// Read once; the chip need not be started. Throws Error (tangErrorInitialization), naming the variable, its value and what it
// may be.
const Settings& settings();

}  // namespace droplet
