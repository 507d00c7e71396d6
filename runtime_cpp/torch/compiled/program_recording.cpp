// Runs of a program that are recorded, and launched from then on.
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "../../contract/address_sanitizer.h"
#include "device/device_api.h"
#include "device/stream.h"
#include "memory/allocator.h"
#include "memory/captures.h"
#include "program.h"
#include "wrapper/context.h"

namespace dipu::compiled {
namespace {

// Results up to this size are copied to memory of their own, so that who keeps a loss does not keep the whole recording.
constexpr std::size_t kCopied = 64 << 10;

// The stream that programs are recorded on; nothing else is put there.
c10::Stream recording_stream(c10::DeviceIndex device) {
    static auto& streams = *new std::array<std::optional<c10::Stream>, kMaxDevices>;
    std::optional<c10::Stream>& stream = streams[static_cast<std::size_t>(device)];
    if (!stream.has_value()) {
        diopiStreamHandle_t native = nullptr;
        check_device(device_api().create_stream(&native), "create a stream");
        stream = external_stream(device, native);
    }
    return *stream;
}

// One program at a time is recorded.
std::mutex& recording_mutex() {
    static auto& mutex = *new std::mutex;
    return mutex;
}

// From its construction on what the thread puts on the device is recorded, not done.
class Capture {
public:
    Capture(c10::DeviceIndex device, int pool, CapturedDraws& draws)
        : stream_(recording_stream(device)),
          before_(exchange_stream(stream_)) {
        try {
            start_record(stream_, pool, draws, RecordedThreads::kOwn);
        } catch (...) {
            exchange_stream(before_);
            throw;
        }
        const int32_t status = device_api().begin_capture(native_stream(stream_));
        if (status != 0) {
            leave();
        }
        check_device(status, "record a stream");
    }
    ~Capture() {
        if (!ended_) {
            diopiGraphHandle_t graph = nullptr;
            if (end(graph) == 0) {
                static_cast<void>(device_api().destroy_graph(graph));
            }
        }
    }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    int32_t end(diopiGraphHandle_t& graph) {
        const int32_t status = device_api().end_capture(native_stream(stream_), &graph);
        leave();
        return status;
    }

private:
    void leave() {
        stop_record(stream_);
        exchange_stream(before_);
        ended_ = true;
    }

    c10::Stream stream_, before_;
    bool ended_ = false;
};

}  // namespace

void Program::begin_replays() {
    std::vector<ArgumentUse> uses;
    for (const std::size_t i : given_roots_) {
        const Root& root = specification_.roots[i];
        if (root.kind != RootKind::kInput) {
            continue;
        }
        const auto among = [](const std::vector<int64_t>& list, auto value) {
            return std::find(list.begin(), list.end(), static_cast<int64_t>(value)) != list.end();
        };
        argument_roots_.push_back(i);
        uses.push_back(among(specification_.written, i)         ? ArgumentUse::kWritten
                       : among(specification_.held, root.index) ? ArgumentUse::kHeld
                                                                : ArgumentUse::kRead);
    }
    is_visible_.resize(specification_.roots.size());
    for (std::size_t i = 0; i < specification_.results.size(); ++i) {
        const Result& result = specification_.results[i];
        if (result.kind != Result::Kind::kView) {
            continue;
        }
        const auto root = static_cast<std::size_t>(specification_.views[static_cast<std::size_t>(result.index)].root);
        const RootKind kind = specification_.roots[root].kind;
        if (kind == RootKind::kOutput || kind == RootKind::kIsland) {
            is_visible_[root] = is_visible_[root] || static_cast<int64_t>(i) < specification_.visible;
            if (std::find(result_roots_.begin(), result_roots_.end(), root) == result_roots_.end()) {
                result_roots_.push_back(root);
            }
        }
    }
    places_.resize(argument_roots_.size());
    replays_.emplace(specification_.device, std::move(uses));
    if (specification_.slots != 0) {
        replays_->refuse("it has tensors of other devices, or of sizes that only data decide");
    } else if (lanes_.has_value()) {
        replays_->refuse("it runs on several streams (DICP_STREAMS)");
    }
}

void Program::note_places() {
    for (std::size_t i = 0; i < places_.size(); ++i) {
        const at::Tensor& tensor = given(specification_.roots[argument_roots_[i]]);
        places_[i] = {&tensor, static_cast<char*>(const_cast<void*>(tensor.const_data_ptr())),
                      is_lent(tensor.storage().data_ptr())};
    }
}

// Whether a recording has done the run.
bool Program::run_recorded() {
    if (!replays_.has_value() || watch_ || is_recorded(specification_.device)) {
        return false;
    }
    note_places();
    const RunPlaces run{places_, numbers_, current_stream_handle(specification_.device)};
    Recording* recording = replays_->find(run);
    if (recording == nullptr) {
        std::unique_ptr<Recording> made = recorded(run);
        if (made == nullptr) {
            return false;
        }
        recording = &replays_->add(std::move(made));
    }
    recording->launch(run);
    take_results(*recording, run.stream);
    return true;
}

// Null where the run is done as it is.
std::unique_ptr<Recording> Program::recorded(const RunPlaces& run) {
    const std::unique_lock lock(recording_mutex(), std::try_to_lock);
    if (!lock.owns_lock() || recorded_streams.load() != 0) {
        return nullptr;  // the next run may do better
    }
    std::unique_ptr<Recording> recording = replays_->begin(run);
    if (recording == nullptr) {
        return nullptr;
    }
    bind_recording(*recording, run);
    std::string reason = issued(*recording);
    if (reason.empty()) {
        reason = keep_results(*recording);
    }
    if (!reason.empty()) {
        replays_->refuse(std::move(reason));
        return nullptr;
    }
    return recording;
}

// Memory that is the recording's.
void Program::bind_recording(Recording& recording, const RunPlaces& run) {
    bind_roots();
    for (std::size_t i = 0; i < argument_roots_.size(); ++i) {
        if (recording.place(i) != run.arguments[i].address) {
            bind_root(argument_roots_[i], recording.place(i), static_cast<int64_t>(run.arguments[i].bytes()));
        }
    }
    if constexpr (diopi::kAddressSanitizer) {
        for (c10::DataPtr& block : run_memory()) {
            recording.own.push_back(std::move(block));
        }
    } else {
        recording.arena = recording.shared->arena(static_cast<std::size_t>(arena_bytes_));
        place_arena(static_cast<char*>(recording.arena->get()));
    }
}

// Why the device does not record the run; empty where it did.
std::string Program::issued(Recording& recording) {
    failure_ = nullptr;
    int32_t at = 0;
    Capture capture(specification_.device, recording.shared->pool(), recording.draws);
    diopiContext context(current_stream_handle(specification_.device), specification_.device, /*keeps=*/true);
    const diopiError_t status = run_library(run_on(&context, at));
    const int32_t ended = capture.end(recording.graph);
    if (status == diopiSuccess && ended == 0) {
        // Temporaries on the device are the pool's, which only recordings of the same stream use.
        context.tensors.remove_if([](const at::Tensor& tensor) { return tensor.is_privateuseone(); });
        recording.kept = std::move(context.tensors);
        return {};
    }
    if (context.failure != nullptr && failure_ == nullptr) {
        failure_ = context.failure;
    }
    const std::string instruction = specification_.instructions[static_cast<std::size_t>(at)];
    return status != diopiSuccess ? instruction + ": " + reason_of(status)
                                  : "the device could not record a run (status " + std::to_string(ended) + ")";
}

std::string Program::reason_of(diopiError_t status) {
    if (failure_ != nullptr) {
        try {
            std::rethrow_exception(std::exchange(failure_, nullptr));
        } catch (const c10::Error& error) {
            return error.what_without_backtrace();
        } catch (const std::exception& error) {
            return error.what();
        }
    }
    const std::string told = last_operator_error();
    return told.empty() ? "the vendor's library refused it (status " + std::to_string(status) + ")" : told;
}

// Takes the memory of results from the run that was recorded; says why that is not possible.
std::string Program::keep_results(Recording& recording) {
    for (const std::size_t root : result_roots_) {
        const c10::Storage& storage = owned_[root];
        c10::StorageImpl* const memory = storage.unsafeGetStorageImpl();
        if (storage.use_count() != 1 || !is_allocated(storage.data_ptr())) {
            return "a result of an operator is held elsewhere";
        }
        const std::size_t bytes = storage.nbytes();
        c10::DataPtr pointer = memory->set_data_ptr(c10::DataPtr(nullptr, storage.device()));
        recording.results->blocks.push_back({root, std::move(pointer), bytes});
    }
    return {};
}

void Program::take_results(const Recording& recording, diopiStreamHandle_t stream) {
    for (const ResultMemory::Block& block : recording.results->blocks) {
        if (!is_visible_[block.root] || block.bytes > kCopied) {
            owned_[block.root] = recording.lent_result(block);
            continue;
        }
        owned_[block.root] = c10::Storage(c10::Storage::use_byte_size_t(), block.bytes,
                                          device_allocator().allocate(block.bytes), &device_allocator(), true);
        if (block.bytes != 0) {
            check_device(device_api().memcpy_d2d_async(stream, owned_[block.root].mutable_data(), block.memory.get(),
                                                       block.bytes),
                         "copy a result of a recorded program");
        }
    }
}

}  // namespace dipu::compiled
