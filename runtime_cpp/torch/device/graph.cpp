// Graphs on the device table's recording, with memory that nothing else reuses while a graph may be replayed.
#include "graph.h"

#include "captured_draws.h"
#include "device_api.h"
#include "memory/captures.h"
#include "memory/private_pool.h"
#include "releases.h"
#include "stream.h"

#ifdef DIPU_HAS_GRAPHS
#include <ATen/core/GraphImplInterface.h>
#include <c10/util/Exception.h>

#include <memory>
#include <optional>
#include <utility>

namespace dipu {
namespace {

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

    void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode) override {
        const diopiDeviceApi_t& api = device_api();
        TORCH_CHECK_NOT_IMPLEMENTED(api.begin_capture != nullptr && api.end_capture != nullptr &&
                                        api.launch_graph != nullptr && api.destroy_graph != nullptr,
                                    "the vendor library records no graphs");
        TORCH_CHECK(!stream_.has_value(), "this graph was captured already; call reset() first");
        if (mode == at::GraphCaptureMode::Global || mode == at::GraphCaptureMode::ThreadLocal) {
            TORCH_WARN_ONCE("dipu records as its vendor does; capture_error_mode is without effect");
        }
        const c10::Stream stream = current_stream(current_device());
        auto joined = std::make_unique<PrivatePool>(pool);
        start_record(stream, joined->slot(), draws_);
        const int32_t status = api.begin_capture(native_stream(stream));
        if (status != 0) {
            stop_record(stream);
        }
        check_device(status, "record a stream");
        stream_ = stream;
        pool_ = std::move(joined);
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
        pool_.reset();
    }

    c10::MempoolId_t pool() const override {
        TORCH_CHECK(stream_.has_value(), "a graph has a pool once its capture began");
        return pool_->id();
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
    std::unique_ptr<PrivatePool> pool_;
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
