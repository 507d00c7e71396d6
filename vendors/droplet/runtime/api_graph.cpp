// The C functions about graphs.
#include "chip.h"
#include "error.h"

using droplet::at_boundary;
using droplet::chip;
using droplet::require;

tangError_t tangStreamBeginCapture(tangStream_t handle) {
    return at_boundary([&] {
        const auto stream = chip().stream(handle);
        stream->device().throw_if_failed();
        stream->begin_record();
        chip().count_recorded_streams(1);
        return tangSuccess;
    });
}

tangError_t tangStreamEndCapture(tangStream_t handle, tangGraph_t* graph) {
    return at_boundary([&] {
        require(graph != nullptr, tangErrorInvalidValue, "tangStreamEndCapture: the result pointer is null");
        *graph = nullptr;
        auto record = chip().stream(handle)->end_record();
        chip().count_recorded_streams(-1);
        require(record != nullptr, tangErrorStreamCapture,
                "tangStreamEndCapture: something was asked for meanwhile that cannot be done again");
        *graph = chip().keep_graph(std::move(record));
        return tangSuccess;
    });
}

tangError_t tangStreamIsCapturing(tangStream_t handle, bool* yes) {
    return at_boundary([&] {
        require(yes != nullptr, tangErrorInvalidValue, "tangStreamIsCapturing: the result pointer is null");
        *yes = chip().stream(handle)->recording();
        return tangSuccess;
    });
}

tangError_t tangGraphLaunch(tangGraph_t graph, tangStream_t handle) {
    return at_boundary([&] {
        const auto stream = chip().stream(handle);
        stream->device().throw_if_failed();
        chip().graph(graph)->launch(*stream);
        if (!stream->async()) stream->device().throw_if_failed();
        return tangSuccess;
    });
}

tangError_t tangGraphDestroy(tangGraph_t graph) {
    return at_boundary([&] {
        chip().remove_graph(graph);
        return tangSuccess;
    });
}
