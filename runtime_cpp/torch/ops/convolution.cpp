// Convolutions of planes and volumes, straight and transposed: one operator of torch, four functions of the contract.
#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution_backward_overrideable_ops.h>
#include <ATen/ops/convolution_overrideable_ops.h>

#include <diopi/functions.h>

#include <array>
#include <tuple>

#include "shapes/derive.h"
#include "shapes/shapes.h"
#include "wrapper/wrapper.h"

namespace dipu {
namespace {

namespace vendor {
constinit VendorFunction<decltype(::diopiConvolution2d)> diopiConvolution2d{{"diopiConvolution2d"}};
constinit VendorFunction<decltype(::diopiConvolution3d)> diopiConvolution3d{{"diopiConvolution3d"}};
constinit VendorFunction<decltype(::diopiConvTranspose2d)> diopiConvTranspose2d{{"diopiConvTranspose2d"}};
constinit VendorFunction<decltype(::diopiConvTranspose3d)> diopiConvTranspose3d{{"diopiConvTranspose3d"}};
constinit VendorFunction<decltype(::diopiConvolution2dBackward)> diopiConvolution2dBackward{
    {"diopiConvolution2dBackward"}};
constinit VendorFunction<decltype(::diopiConvolution3dBackward)> diopiConvolution3dBackward{
    {"diopiConvolution3dBackward"}};
constinit VendorFunction<decltype(::diopiConvTranspose2dBackward)> diopiConvTranspose2dBackward{
    {"diopiConvTranspose2dBackward"}};
constinit VendorFunction<decltype(::diopiConvTranspose3dBackward)> diopiConvTranspose3dBackward{
    {"diopiConvTranspose3dBackward"}};
}  // namespace vendor

using OptionalTensor = std::optional<at::Tensor>;
using Sizes = at::IntArrayRef;
using ThreeGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// What all convolutions are told besides their tensors.
struct Window {
    at::DimVector stride;
    at::DimVector padding;
    at::DimVector dilation;
    at::DimVector output_padding;
    int64_t groups;
    bool transposed;

    // A single number stands for every dimension.
    Window(const at::Tensor& input, Sizes stride_, Sizes padding_, Sizes dilation_, Sizes output_padding_,
           int64_t groups_, bool transposed_)
        : groups(groups_),
          transposed(transposed_) {
        const auto spatial = static_cast<std::size_t>(input.dim() - 2);
        for (auto& [own, given] : {std::pair{&stride, stride_},
                                   {&padding, padding_},
                                   {&dilation, dilation_},
                                   {&output_padding, output_padding_}}) {
            own->assign(given.begin(), given.end());
            own->resize(given.size() == 1 ? spatial : given.size(), given.empty() ? 0 : given[0]);
        }
    }
};

bool lacks(const VendorSlot& function) {
    return function.address == nullptr && !refuse((std::string("no ") + function.name).c_str());
}

bool is_planes_or_volumes(const at::Tensor& input) {
    return ((input.dim() == 4 || input.dim() == 5) && !input.is_complex()) ||
           refuse("neither planes nor volumes, or complex numbers");
}

template <class Function>
bool straight(const Function& function, const at::Tensor& out, const In& input, const In& weight, const In& bias,
              const Window& w, c10::DeviceIndex device) {
    if (lacks(function)) {
        return false;
    }
    Context context(device);
    return ran(function(context, out_handle(out), input, weight, bias, size_arg(Sizes(w.stride)),
                        size_arg(Sizes(w.padding)), size_arg(Sizes(w.dilation)), w.groups),
               function.name);
}

template <class Function>
bool transposed(const Function& function, const at::Tensor& out, const In& input, const In& weight, const In& bias,
                const Window& w, c10::DeviceIndex device) {
    if (lacks(function)) {
        return false;
    }
    Context context(device);
    return ran(
        function(context, out_handle(out), input, weight, bias, size_arg(Sizes(w.stride)), size_arg(Sizes(w.padding)),
                 size_arg(Sizes(w.output_padding)), w.groups, size_arg(Sizes(w.dilation))),
        function.name);
}

constinit OperatorControl convolution_control{"convolution_overrideable"};
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const OptionalTensor& bias, Sizes stride,
                       Sizes padding, Sizes dilation, bool is_transposed, Sizes output_padding, int64_t groups) {
    const auto redispatched = [&](c10::DispatchKeySet key) {
        return at::_ops::convolution_overrideable::redispatch(
            key, input, weight, bias, c10::fromIntArrayRefSlow(stride), c10::fromIntArrayRefSlow(padding),
            c10::fromIntArrayRefSlow(dilation), is_transposed, c10::fromIntArrayRefSlow(output_padding), groups);
    };
    if (intercepted(convolution_control)) {
        return redispatched(kInterposer);
    }
    if (!is_planes_or_volumes(input) || !one_dtype(input, weight, bias)) {
        return redispatched(kFallback);
    }
    const Window w(input, stride, padding, dilation, output_padding, groups, is_transposed);
    const c10::Device device = input.device();
    const auto sizes = is_transposed
                           ? shape::conv_transpose_output(input.sizes(), weight.sizes(), w.stride, w.padding,
                                                          w.output_padding, groups, w.dilation)
                           : shape::conv_output(input.sizes(), weight.sizes(), w.stride, w.padding, w.dilation);
    at::Tensor out = new_contiguous(sizes, input.scalar_type(), device.index());
    const In input_arg(input, device);
    const In weight_arg(weight, device);
    const In bias_arg(bias, device);
    const bool planes = input.dim() == 4;
    const bool done =
        is_transposed
            ? (planes
                   ? transposed(vendor::diopiConvTranspose2d, out, input_arg, weight_arg, bias_arg, w, device.index())
                   : transposed(vendor::diopiConvTranspose3d, out, input_arg, weight_arg, bias_arg, w, device.index()))
            : (planes ? straight(vendor::diopiConvolution2d, out, input_arg, weight_arg, bias_arg, w, device.index())
                      : straight(vendor::diopiConvolution3d, out, input_arg, weight_arg, bias_arg, w, device.index()));
    return done ? out : redispatched(kFallback);
}

struct BackwardArguments {
    const ThreeGradients& gradients;
    const In& grad;
    const In& input;
    const In& weight;
    diopiSize_t* bias_sizes;
    const Window& window;
    c10::DeviceIndex device;
};

template <class Function>
bool straight_backward(const Function& function, const BackwardArguments& a) {
    if (lacks(function)) {
        return false;
    }
    const auto& [grad_input, grad_weight, grad_bias] = a.gradients;
    Context context(a.device);
    return ran(function(context, out_handle(grad_input), out_handle(grad_weight), out_handle(grad_bias), a.grad,
                        a.input, a.weight, a.bias_sizes, size_arg(Sizes(a.window.stride)),
                        size_arg(Sizes(a.window.padding)), size_arg(Sizes(a.window.dilation)), a.window.groups),
               function.name);
}

template <class Function>
bool transposed_backward(const Function& function, const BackwardArguments& a) {
    if (lacks(function)) {
        return false;
    }
    const auto& [grad_input, grad_weight, grad_bias] = a.gradients;
    Context context(a.device);
    return ran(
        function(context, out_handle(grad_input), out_handle(grad_weight), out_handle(grad_bias), a.grad, a.input,
                 a.weight, a.bias_sizes, size_arg(Sizes(a.window.stride)), size_arg(Sizes(a.window.padding)),
                 size_arg(Sizes(a.window.dilation)), size_arg(Sizes(a.window.output_padding)), a.window.groups),
        function.name);
}

constinit OperatorControl convolution_backward_control{"convolution_backward_overrideable"};
ThreeGradients convolution_backward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                                    Sizes stride, Sizes padding, Sizes dilation, bool is_transposed,
                                    Sizes output_padding, int64_t groups, std::array<bool, 3> output_mask) {
    const auto redispatched = [&](c10::DispatchKeySet key) {
        return at::_ops::convolution_backward_overrideable::redispatch(
            key, grad_output, input, weight, c10::fromIntArrayRefSlow(stride), c10::fromIntArrayRefSlow(padding),
            c10::fromIntArrayRefSlow(dilation), is_transposed, c10::fromIntArrayRefSlow(output_padding), groups,
            output_mask);
    };
    if (intercepted(convolution_backward_control)) {
        return redispatched(kInterposer);
    }
    if (!is_planes_or_volumes(input) || !one_dtype(grad_output, input, weight)) {
        return redispatched(kFallback);
    }
    const Window w(input, stride, padding, dilation, output_padding, groups, is_transposed);
    const c10::Device device = input.device();
    const c10::ScalarType dtype = input.scalar_type();
    const at::DimVector bias = derive::conv_bias_sizes(grad_output, output_mask);
    ThreeGradients gradients{output_mask[0] ? new_contiguous(input.sizes(), dtype, device.index()) : at::Tensor(),
                             output_mask[1] ? new_contiguous(weight.sizes(), dtype, device.index()) : at::Tensor(),
                             output_mask[2] ? new_contiguous(bias, dtype, device.index()) : at::Tensor()};
    const In grad_arg(grad_output, device);
    const In input_arg(input, device);
    const In weight_arg(weight, device);
    diopiSize_t bias_sizes = size_arg(Sizes(bias));
    const BackwardArguments arguments{gradients, grad_arg, input_arg, weight_arg, &bias_sizes, w, device.index()};
    const bool planes = input.dim() == 4;
    const bool done = is_transposed ? (planes ? transposed_backward(vendor::diopiConvTranspose2dBackward, arguments)
                                              : transposed_backward(vendor::diopiConvTranspose3dBackward, arguments))
                                    : (planes ? straight_backward(vendor::diopiConvolution2dBackward, arguments)
                                              : straight_backward(vendor::diopiConvolution3dBackward, arguments));
    return done ? gradients : redispatched(kFallback);
}

}  // namespace

void register_convolution(Registrar& registrar) {
    // A vendor that has planes alone serves those, and the CPU the rest.
    registrar.resolve({&vendor::diopiConvolution3d, &vendor::diopiConvTranspose2d, &vendor::diopiConvTranspose3d,
                       &vendor::diopiConvolution3dBackward, &vendor::diopiConvTranspose2dBackward,
                       &vendor::diopiConvTranspose3dBackward});
    registrar.add(convolution_control, &convolution, {&vendor::diopiConvolution2d});
    registrar.add(convolution_backward_control, &convolution_backward, {&vendor::diopiConvolution2dBackward});
}

}  // namespace dipu
