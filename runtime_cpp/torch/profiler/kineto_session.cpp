// Gives the recorded spans to kineto: an event on the device's stream, one for the call on the host, and the line between them.
#include "kineto_session.h"

#ifdef USE_KINETO

#include <ThreadUtil.h>
#include <libkineto.h>
#include <output_base.h>

#include <set>
#include <utility>

#include "device/device_properties.h"
#include "profiler.h"
#include "releases.h"
#include "spans.h"

#ifdef DIPU_HAS_PROFILER_REGISTRY
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#endif

namespace dipu {
namespace {

using libkineto::ActivityType;
using Linked = libkineto::getLinkedActivityCallback;

// Operators are numbered from 1, and torch looks up by number: what was called outside of operators must not meet one. Lines, too,
// are numbered from 1 by other profilers of the process, as CUPTI is, and torch ends where two begin with one number.
constexpr uint32_t kFirstId = 1u << 30;

class Session final : public libkineto::IActivityProfilerSession {
public:
    void start() override {
        start_spans();
        status_ = libkineto::TraceStatus::RECORDING;
    }
    void stop() override {
        stop_spans();
        status_ = libkineto::TraceStatus::PROCESSING;
    }
    std::vector<std::string> errors() override { return {}; }

    void processTrace(libkineto::ActivityLogger& logger) override {
        processTrace(logger, [](int32_t) { return nullptr; }, 0, 0);
    }
    void processTrace(libkineto::ActivityLogger& logger, Linked linked, int64_t start, int64_t end) override {
        buffer_->span = libkineto::TraceSpan(start, end, "dipu");
        std::set<std::pair<c10::DeviceIndex, c10::StreamId>> streams;
        uint32_t line = kFirstId;
        for (const Span& span : collected_spans()) {
            const libkineto::ITraceActivity* const op = linked(static_cast<int32_t>(span.operator_id));
            add_call(span, op, ++line).log(logger);
            add_work(span, op, line).log(logger);
            streams.emplace(span.device, span.stream);
        }
        name_rows(logger, streams, start);
        status_ = libkineto::TraceStatus::READY;
    }

    // There may be several devices; name_rows names each.
    std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
    std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
    std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }

    void pushCorrelationId(uint64_t id) override { enter_operator(id); }
    void popCorrelationId() override { leave_operator(); }

private:
    libkineto::GenericTraceActivity& add(ActivityType type, const Span& span, const libkineto::ITraceActivity* op,
                                         uint32_t line) {
        buffer_->emplace_activity(buffer_->span, type, span.name);
        libkineto::GenericTraceActivity& activity = *buffer_->activities.back();
        activity.id = static_cast<int32_t>(line);
        activity.threadId = span.thread;
        activity.linked = op;
        activity.flow.id = line;
        activity.flow.type = libkineto::kLinkAsyncCpuGpu;
        activity.addMetadata("correlation", line);
        if (span.is_copy) {
            activity.addMetadata("bytes", span.bytes);
        }
        return activity;
    }
    const libkineto::GenericTraceActivity& add_call(const Span& span, const libkineto::ITraceActivity* op,
                                                    uint32_t line) {
        libkineto::GenericTraceActivity& activity = add(ActivityType::PRIVATEUSE1_RUNTIME, span, op, line);
        activity.startTime = span.host_start;
        activity.endTime = span.host_end;
        activity.device = libkineto::processId();
        activity.resource = span.thread;
        activity.flow.start = 1;
        return activity;
    }
    const libkineto::GenericTraceActivity& add_work(const Span& span, const libkineto::ITraceActivity* op,
                                                    uint32_t line) {
        libkineto::GenericTraceActivity& activity =
            add(span.is_copy ? ActivityType::GPU_MEMCPY : ActivityType::CONCURRENT_KERNEL, span, op, line);
        activity.startTime = span.start;
        activity.endTime = span.end;
        activity.device = span.device;
        activity.resource = static_cast<int32_t>(span.stream);
        activity.addMetadata("device", static_cast<int>(span.device));
        activity.addMetadata("stream", span.stream);
        return activity;
    }

    static void name_rows(libkineto::ActivityLogger& logger,
                          const std::set<std::pair<c10::DeviceIndex, c10::StreamId>>& streams, int64_t time) {
        for (const auto& [device, stream] : streams) {
            const std::string label = "dipu:" + std::to_string(static_cast<int>(device));
            logger.handleDeviceInfo({device, libkineto::kExceedMaxPid + device, device_properties(device).name, label},
                                    time);
            logger.handleResourceInfo({stream, stream, device, "stream " + std::to_string(stream)}, time);
        }
    }

    std::unique_ptr<libkineto::CpuTraceBuffer> buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
};

class Profiler final : public libkineto::IActivityProfiler {
public:
    Profiler() { profiled.store(true, std::memory_order_relaxed); }

    const std::string& name() const override { return name_; }
    const std::set<ActivityType>& availableActivities() const override { return activities_; }

    // Null, which is no session, for a trace of the host alone, and for one of the GPU's own kernels: ProfilerActivity.CUDA, which
    // alone asks for its profiler's overhead, shows them as they are, without the time that our events cost between them.
    std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType>& wanted,
                                                                   const libkineto::Config& /*config*/) override {
        if (wanted.count(ActivityType::CONCURRENT_KERNEL) == 0 || wanted.count(ActivityType::OVERHEAD) != 0) {
            return nullptr;
        }
        return std::make_unique<Session>();
    }
    std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t /*start_ms*/, int64_t /*duration_ms*/,
                                                                   const std::set<ActivityType>& wanted,
                                                                   const libkineto::Config& config) override {
        return configure(wanted, config);
    }

private:
    std::string name_ = "dipu";
    std::set<ActivityType> activities_{ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
                                       ActivityType::PRIVATEUSE1_RUNTIME};
};

}  // namespace

void register_kineto() {
    const auto factory = [] { return std::unique_ptr<libkineto::IActivityProfiler>(std::make_unique<Profiler>()); };
#ifdef DIPU_HAS_PROFILER_REGISTRY
    torch::profiler::impl::PrivateUse1ProfilerRegistry::instance().registerFactory(factory);
#else
    libkineto::api().registerProfilerFactory(factory);
#endif
}

}  // namespace dipu

#else

#include "profiler.h"

namespace dipu {

// Nobody says when a profile begins.
void register_kineto() { profiled.store(true, std::memory_order_relaxed); }

}  // namespace dipu

#endif
