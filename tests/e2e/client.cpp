// A C++ program in the style of those written for DIPU: weak functions of the contract, and names of its headers.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <diopi/diopirt.h>
#include <diopi/functions.h>
#include <diopi/functions_mmcv.h>
#include <torch/library.h>

#include <optional>
#include <string>

#include "csrc_dipu/base/basedef.h"
#include "csrc_dipu/diopirt/diopirt_impl.h"
#include "csrc_dipu/runtime/device/deviceapis.h"
#include "csrc_dipu/utils/helpfunc.hpp"

using dipu::VENDOR_TYPE;
using dipu::diopi_helper::toDiopiScalar;
using dipu::diopi_helper::toDiopiTensorHandle;

// No vendor has this one.
extern "C" DIOPI_API diopiError_t diopiFrobnicate(diopiContextHandle_t ctx);

namespace {

using at::Tensor;

bool is_on_host(const Tensor& tensor) {
    diopiDevice_t device;
    diopiGetTensorDevice(toDiopiTensorHandle(tensor), &device);
    return device == diopi_host;
}

Tensor nms(Tensor boxes, Tensor scores, double iou_threshold, int64_t offset) {
    auto boxes_p = toDiopiTensorHandle(boxes);
    auto scores_p = toDiopiTensorHandle(scores);
    diopiContext ctx(dipu::getCurrentDIPUStream().rawstream());
    diopiContextHandle_t ch = &ctx;
    Tensor out;
    auto outp = toDiopiTensorHandle(out);
    diopiTensorHandle_t* outhandle = &outp;
    bool is_device = boxes.device().type() == dipu::DIPU_DEVICE_TYPE;
    TORCH_CHECK(is_device && reinterpret_cast<void*>(diopiNmsMmcv) != nullptr, "diopiNmsMmcv cannot run");
    auto ret = diopiNmsMmcv(ch, outhandle, boxes_p, scores_p, iou_threshold, offset);
    TORCH_CHECK(ret == diopiSuccess, "diopiNmsMmcv answers ", static_cast<int>(ret));
    auto tensorhandle = reinterpret_cast<Tensor*>(*outhandle);
    return *tensorhandle;
}

// out = input + alpha * other
Tensor add_number(const Tensor& input, const at::Scalar& other, const at::Scalar& alpha) {
    Tensor out = at::empty_like(input);
    diopiScalar_t other_s = toDiopiScalar(other);
    diopiScalar_t alpha_s = toDiopiScalar(alpha);
    diopiContext ctx(dipu::getCurrentDIPUStream(input.device().index()).rawstream());
    auto ret = diopiAddScalar(&ctx, toDiopiTensorHandle(out), toDiopiTensorHandle(input), &other_s, &alpha_s);
    TORCH_CHECK(ret == diopiSuccess, "diopiAddScalar answers ", static_cast<int>(ret));
    return out;
}

// The mean of each box's bins; the places of greatest samples, which it has no use for, are empty, as in mmcv.
Tensor roi_align(const Tensor& input, const Tensor& rois, int64_t bins) {
    Tensor out = at::empty({rois.size(0), input.size(1), bins, bins}, input.options());
    Tensor argmax = at::empty({0}, input.options());
    auto argmax_p = toDiopiTensorHandle(argmax);
    diopiContext ctx(dipu::getCurrentDIPUStream().rawstream());
    auto ret = diopiRoiAlignMmcv(&ctx, toDiopiTensorHandle(out), argmax_p, argmax_p, toDiopiTensorHandle(input),
                                 toDiopiTensorHandle(rois), bins, bins, 2, 1, 1.0F, true);
    TORCH_CHECK(ret == diopiSuccess, "diopiRoiAlignMmcv answers ", static_cast<int>(ret));
    return out;
}

bool is_absent(const std::optional<Tensor>& tensor) { return toDiopiTensorHandle(tensor) == nullptr; }

bool has_unknown_function() { return reinterpret_cast<void*>(diopiFrobnicate) != nullptr; }

int64_t stream(int64_t device) { return reinterpret_cast<int64_t>(dipu::getCurrentDIPUStream(device).rawstream()); }

std::string vendor() { return dipu::VendorTypeToStr(VENDOR_TYPE); }

}  // namespace

TORCH_LIBRARY(client, library) {
    library.def("is_on_host", &is_on_host);
    library.def("nms", &nms);
    library.def("add_number", &add_number);
    library.def("roi_align", &roi_align);
    library.def("is_absent", &is_absent);
    library.def("has_unknown_function", &has_unknown_function);
    library.def("stream", &stream);
    library.def("vendor", &vendor);
}
