// Snapshots, raw allocations, limits and the memory check for Python.
#include "module_memory.h"

#include "memory/allocator.h"
#include "memory/host_allocator.h"
#include "memory/memory_check.h"
#include "memory/stacks.h"
#include "releases.h"

namespace py = pybind11;

namespace dipu {
namespace {

c10::DeviceIndex index(int device) { return static_cast<c10::DeviceIndex>(device); }

const char* name_of(BlockUse use) {
    switch (use) {
        case BlockUse::kAllocated: return "allocated";
        case BlockUse::kWaiting: return "waiting";
        case BlockUse::kFree: return "free";
    }
    return "unknown";
}

py::list frames_of(const BlockState& block) {
    py::list rows;
    if (block.stack != nullptr && block.allocated()) {
        for (const Frame& frame : block.stack->frames()) {
            rows.append(py::make_tuple(frame.file, frame.line, frame.function));
        }
    }
    return rows;
}

void add_stat(py::dict& rows, const std::string& name, const c10::CachingAllocator::Stat& stat) {
    rows[py::str(name + ".current")] = stat.current;
    rows[py::str(name + ".peak")] = stat.peak;
    rows[py::str(name + ".allocated")] = stat.allocated;
    rows[py::str(name + ".freed")] = stat.freed;
}

py::dict host_stats(const at::HostStats& stats) {
    py::dict rows;
    add_stat(rows, "allocated_bytes", stats.allocated_bytes);
    for_each_in_use(stats, [&](const char* name, const auto& stat) { add_stat(rows, name, stat); });
    rows["num_host_alloc"] = stats.num_host_alloc;
    rows["num_host_free"] = stats.num_host_free;
    return rows;
}

}  // namespace

void bind_memory(py::module_& m) {
    m.def("memory_info", [](int device) { return device_allocator().getMemoryInfo(index(device)); });
    m.def("memory_snapshot", [](int device) {
        py::list rows;
        for (const BlockState& row : memory_snapshot(index(device))) {
            rows.append(
                py::make_tuple(row.address, row.bytes, row.requested, row.stream, name_of(row.use), frames_of(row)));
        }
        return rows;
    });
    m.def("record_stacks", [](bool wanted) { stacks_wanted.store(wanted || checking_memory()); });
    m.def("allocate_raw", [](int device, std::size_t bytes, int64_t stream) {
        return reinterpret_cast<std::uintptr_t>(allocate_raw(index(device), bytes, stream));
    });
    m.def("free_raw", [](std::uintptr_t pointer) { free_raw(reinterpret_cast<void*>(pointer)); });
    m.def("set_memory_fraction", [](int device, double fraction) { set_memory_fraction(index(device), fraction); });
    m.def("memory_fraction", [](int device) { return memory_fraction(index(device)); });
    m.def("host_memory_stats", [] { return host_stats(host_allocator().get_stats()); });
    m.def("reset_peak_host_memory_stats", [] { host_allocator().reset_peak_stats(); });
    m.def("reset_accumulated_host_memory_stats", [] { host_allocator().reset_accumulated_stats(); });
    m.def("checking_memory", &checking_memory);
    m.def("memory_faults", &memory_faults);
    m.def("memory_in_use", &memory_in_use);
    m.def("settle_stacks", &settle_stacks);
}

}  // namespace dipu
