// Graphs on the device table's recording, with memory that nothing else reuses while a graph may be replayed.
#include "graph.h"

#include "captured_draws.h"
#include "device_api.h"
#include "memory/allocator.h"
#include "memory/captures.h"
#include "releases.h"
#include "stream.h"

#ifdef DIPU_HAS_GRAPHS
#include <ATen/core/GraphImplInterface.h>
#include <c10/util/Exception.h>

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace dipu {
namespace {

using PoolId = c10::MempoolId_t;

// The pools of graphs: a graph that is given another's pool shares it, the last one ends it.
class Pools {
public:
    // The slot of `wanted`; a new one for {0, 0}, whose id is written there. Throws c10::Error when all are taken.
    int join(PoolId& wanted) {
        const std::lock_guard lock(mutex_);
        if (wanted == PoolId{0, 0}) {
            wanted = {++last_, 0};
        }
        int empty = kNoPool;
        for (int slot = kPrivatePools - 1; slot >= 0; --slot) {
            Pool& pool = pools_[static_cast<std::size_t>(slot)];
            if (pool.graphs != 0 && pool.id == wanted) {
                ++pool.graphs;
                return slot;
            }
            empty = pool.graphs == 0 ? slot : empty;
        }
        TORCH_CHECK(empty != kNoPool, kPrivatePools,
                    " graphs with pools of their own are the most; share a pool, or reset() some");
        pools_[static_cast<std::size_t>(empty)] = {wanted, 1};
        return empty;
    }

    void leave(int slot) {
        const std::lock_guard lock(mutex_);
        if (--pools_[static_cast<std::size_t>(slot)].graphs == 0) {
            dissolve_pool(slot);
        }
    }

private:
    struct Pool {
        PoolId id{0, 0};
        int graphs = 0;
    };

    std::mutex mutex_;
    std::array<Pool, kPrivatePools> pools_;
    uint64_t last_ = 0;
};

Pools& pools() {
    static Pools& all = *new Pools;
    return all;
}

class Graph final : public at::GraphImplInterface {
public:
    explicit Graph(const at::GraphImplArgs& /*args*/) {}

    ~Graph() override {
        try {
            reset();
        } catch (const std::exception& error) {
            TORCH_WARN("dipu: a graph cannot be released: ", error.what());
        }
    }

    void capture_begin(PoolId pool, at::GraphCaptureMode mode) override {
        const diopiDeviceApi_t& api = device_api();
        TORCH_CHECK_NOT_IMPLEMENTED(api.begin_capture != nullptr && api.end_capture != nullptr &&
                                        api.launch_graph != nullptr && api.destroy_graph != nullptr,
                                    "the vendor library records no graphs");
        TORCH_CHECK(!stream_.has_value(), "this graph was captured already; call reset() first");
        if (mode == at::GraphCaptureMode::Global || mode == at::GraphCaptureMode::ThreadLocal) {
            TORCH_WARN_ONCE("dipu records as its vendor does; capture_error_mode is without effect");
        }
        const c10::Stream stream = current_stream(current_device());
        const int slot = pools().join(pool);
        try {
            start_record(stream, slot, draws_);
            const int32_t status = api.begin_capture(native_stream(stream));
            if (status != 0) {
                stop_record(stream);
            }
            check_device(status, "record a stream");
        } catch (...) {
            pools().leave(slot);
            throw;
        }
        stream_ = stream;
        pool_ = pool;
        slot_ = slot;
        recording_ = true;
    }

    void capture_end() override {
        TORCH_CHECK(recording_, "capture_end() without capture_begin()");
        recording_ = false;
        stop_record(*stream_);
        const int32_t status = device_api().end_capture(native_stream(*stream_), &graph_);
        if (status != 0) {
            graph_ = nullptr;
            reset();
        }
        check_device(status, "end the record of a stream; something cannot be done again");
    }

    void instantiate() override { check_captured(); }

    void replay() override {
        check_captured();
        const DeviceScope scope(stream_->device_index());
        draws_.begin_replay();
        check_device(device_api().launch_graph(graph_, native_stream(current_stream(stream_->device_index()))),
                     "replay a graph");
    }

    void reset() override {
        if (!stream_.has_value()) {
            return;
        }
        if (recording_) {
            recording_ = false;
            stop_record(*stream_);
            static_cast<void>(device_api().end_capture(native_stream(*stream_), &graph_));
        }
        if (graph_ != nullptr) {
            const c10::DeviceIndex device = stream_->device_index();
            synchronize_device(device);  // which may run the graph still; where it cannot be asked the graph stays
            const DeviceScope scope(device);
            static_cast<void>(device_api().destroy_graph(std::exchange(graph_, nullptr)));
        }
        draws_ = {};
        stream_.reset();
        pools().leave(slot_);
    }

    PoolId pool() const override {
        TORCH_CHECK(stream_.has_value(), "a graph has a pool once its capture began");
        return pool_;
    }

    void enable_debug_mode() override {}

    void debug_dump(const std::string& /*path*/) override {
        TORCH_CHECK_NOT_IMPLEMENTED(false, "the device table shows nothing of a recorded graph");
    }

private:
    void check_captured() const {
        TORCH_CHECK(graph_ != nullptr, recording_ ? "the capture has not ended" : "nothing was captured");
    }

    std::optional<c10::Stream> stream_;  // that was recorded
    PoolId pool_{0, 0};
    int slot_ = kNoPool;
    CapturedDraws draws_;
    bool recording_ = false;
    diopiGraphHandle_t graph_ = nullptr;
};

}  // namespace

void register_graphs() {
    at::GraphImplRegistry()->Register(c10::DeviceTypeName(c10::kPrivateUse1, /*lower_case=*/false),
                                      [](const at::GraphImplArgs& args) -> std::unique_ptr<at::GraphImplInterface> {
                                          return std::make_unique<Graph>(args);
                                      });
}

}  // namespace dipu

#else

namespace dipu {

void register_graphs() {}

}  // namespace dipu

#endif
