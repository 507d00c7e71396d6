// A problem as one of cuDNN's graphs, with the kernel that its heuristics choose.
#pragma once

#include <cudnn_frontend.h>
#include <diopi/diopirt.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/error.h"

namespace diopi::launch {

namespace fe = cudnn_frontend;

class CudnnGraph {
public:
    bool is_runnable() const { return runs_; }
    int64_t bytes() const { return bytes_; }  // of the workspace

protected:
    using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
    using Note = fe::NumericalNote_t;

    struct Layout {
        int64_t name;
        std::vector<int64_t> sizes, strides;
        fe::DataType_t type = fe::DataType_t::NOT_SET;  // that of the graph
    };

    // Tensors are of `dtype`; of what is no float there is no graph. `add` gives it its nodes; kernels of `barred` kinds
    // are not taken, only of `wanted` ones where there are any.
    template <class Add>
    void build(cudnnHandle_t handle, diopiDtype_t dtype, const std::vector<Note>& barred, Add&& add,
               const std::vector<Note>& wanted = {}) {
        try {
            const fe::DataType_t type = type_of(dtype);
            if (type == fe::DataType_t::NOT_SET) return;
            const auto sums = dtype == diopi_dtype_float64 ? type : fe::DataType_t::FLOAT;
            graph_ = {};
            graph_.set_io_data_type(type).set_intermediate_data_type(sums).set_compute_data_type(sums);
            add();
            std::vector<fe::HeurMode_t> modes{fe::HeurMode_t::A};
            if (!wanted.empty()) modes.insert(modes.end(), {fe::HeurMode_t::B, fe::HeurMode_t::FALLBACK});  // name more
            if (graph_.validate().is_bad() || graph_.build_operation_graph(handle).is_bad() ||
                graph_.create_execution_plans(modes).is_bad())
                return;
            graph_.deselect_workspace_greater_than(int64_t{1} << 30);
            graph_.deselect_numeric_notes(barred);
            if (!wanted.empty()) graph_.select_numeric_notes(wanted);
            runs_ = graph_.check_support(handle).is_good() && graph_.build_plans(handle).is_good() &&
                    graph_.get_workspace_size(bytes_).is_good();
        } catch (const std::exception&) {
            runs_ = false;
        }
    }

    void run(cudnnHandle_t handle, std::unordered_map<int64_t, void*>& places, void* room) const {
        fe::error_object status = graph_.execute(handle, places, room);
        kernels::require(status.is_good(), "a graph failed in cuDNN: %s", status.get_message().c_str());
    }

    Tensor input(const Layout& layout) {
        fe::graph::Tensor_attributes tensor;
        describe(tensor, layout);
        return graph_.tensor(tensor);
    }
    static void give(const Tensor& output, const Layout& layout) {
        output->set_output(true);
        describe(*output, layout);
    }

    fe::graph::Graph graph_;

private:
    static fe::DataType_t type_of(diopiDtype_t dtype) {
        switch (dtype) {
            case diopi_dtype_float16: return fe::DataType_t::HALF;
            case diopi_dtype_bfloat16: return fe::DataType_t::BFLOAT16;
            case diopi_dtype_float32: return fe::DataType_t::FLOAT;
            case diopi_dtype_float64: return fe::DataType_t::DOUBLE;
            default: return fe::DataType_t::NOT_SET;
        }
    }

    static void describe(fe::graph::Tensor_attributes& tensor, const Layout& layout) {
        tensor.set_uid(layout.name).set_dim(layout.sizes).set_stride(layout.strides);
        if (layout.type != fe::DataType_t::NOT_SET) tensor.set_data_type(layout.type);
    }

    int64_t bytes_ = 0;
    bool runs_ = false;
};

}  // namespace diopi::launch
