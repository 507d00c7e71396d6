// Copies with conversion: dtype, strides and lazy bits change on the side that can do it, then bytes move.
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty_like.h>
#include <diopi/functions.h>

#include <vector>

#include "copy_parts.h"
#include "host_allocator.h"
#include "interposer/fallback.h"
#include "library.h"
#include "transfer.h"
#include "device/vendor_library.h"
#include "wrapper/arguments.h"
#include "wrapper/context.h"
#include "wrapper/fast_path.h"
#include "wrapper/status.h"
#include "wrapper/vendor_function.h"

namespace dipu {
namespace {

constinit VendorFunction<decltype(::diopiCopyInp)> diopi_copy{{"diopiCopyInp"}};

bool same_layout(const at::Tensor& a, const at::Tensor& b) {
    return a.scalar_type() == b.scalar_type() && a.strides() == b.strides() && a.is_non_overlapping_and_dense();
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
    return a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

// A host tensor with the layout and dtype of `like`, whose physical contents mean what `source` means under `like`'s bits.
at::Tensor host_staging(const at::Tensor& source, const at::Tensor& like) {
    at::Tensor staging(at::detail::empty_strided_cpu(like.sizes(), like.strides(), like.scalar_type()));
    staging._set_conj(like.is_conj());
    staging._set_neg(like.is_neg());
    staging.copy_(source);
    return staging;
}

// Both on one device, in a layout that bytes alone cannot bridge.
void convert_on_device(const at::Tensor& source, const at::Tensor& destination) {
    if (diopi_copy.address != nullptr && copy_by_parts(source, destination)) {
        return;
    }
    if (diopi_copy.address != nullptr) {
        Context context(destination);
        if (ran(diopi_copy(context, handle(source), out_handle(destination)), "diopiCopyInp")) {
            return;
        }
    } else {
        refuse("no diopiCopyInp");
    }
    FallbackRecord record("aten::_copy_from");
    record.add_bytes(static_cast<int64_t>(source.nbytes() + destination.nbytes()));
    // The destination's image is read too: elements between its strides belong to other tensors.
    const at::Tensor image = host_image(destination);
    image.copy_(host_image(source));
    write_image(image, destination);
}

void copy_on_device(const at::Tensor& source, const at::Tensor& destination) {
    if (same_layout(source, destination) && same_bits(source, destination)) {
        if (source.const_data_ptr() != destination.const_data_ptr()) {
            device_to_device(source, destination);
        }
        return;
    }
    convert_on_device(source, destination);
}

// Within one device, a dense tensor with the dtype, layout and meaning of `destination`.
void copy_across(const at::Tensor& source, const at::Tensor& destination) {
    if (source.device() == destination.device()) {
        copy_on_device(source, destination);
        return;
    }
    const c10::TensorOptions on_source = destination.options().device(source.device());
    at::Tensor sent = source;
    if (!same_layout(source, destination) || !same_bits(source, destination)) {
        sent = at::empty_like(destination, on_source);
        sent._set_conj(destination.is_conj());
        sent._set_neg(destination.is_neg());
        copy_on_device(source, sent);
    }
    if (sent.strides() == destination.strides() && destination.is_non_overlapping_and_dense()) {
        device_to_device(sent, destination);
        return;
    }
    at::Tensor received = at::empty_like(sent, sent.options().device(destination.device()));
    received._set_conj(sent.is_conj());
    received._set_neg(sent.is_neg());
    device_to_device(sent, received);
    copy_on_device(received, destination);
}

void copy_to_device(const at::Tensor& source, const at::Tensor& destination, bool non_blocking) {
    if (destination.is_non_overlapping_and_dense()) {
        if (same_layout(source, destination) && same_bits(source, destination)) {
            host_to_device(source, destination, !(non_blocking && is_pinned(source.const_data_ptr())));
        } else {
            host_to_device(host_staging(source, destination), destination, true);
        }
        return;
    }
    at::Tensor dense = at::empty_like(destination);
    dense._set_conj(destination.is_conj());
    dense._set_neg(destination.is_neg());
    host_to_device(host_staging(source, dense), dense, true);
    copy_on_device(dense, destination);
}

// Whether the span of `tensor` is so much larger than its elements that gathering them on the device first pays.
bool is_sparse_span(const at::Tensor& tensor) {
    const std::size_t span = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
    return span > 4 * tensor.nbytes();
}

void copy_to_host(const at::Tensor& source, const at::Tensor& destination, bool non_blocking) {
    if (same_layout(source, destination) && same_bits(source, destination)) {
        device_to_host(source, destination, !(non_blocking && is_pinned(destination.const_data_ptr())));
        return;
    }
    if (diopi_copy.address != nullptr && is_sparse_span(source)) {
        at::Tensor dense = at::empty_like(source);
        dense._set_conj(source.is_conj());
        dense._set_neg(source.is_neg());
        copy_on_device(source, dense);
        destination.copy_(host_image(dense));
        return;
    }
    destination.copy_(host_image(source));
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
    if (dst.numel() == 0) {
        return dst;
    }
    at::assert_no_internal_overlap(dst);
    const at::Tensor source = self.sizes() == dst.sizes() ? self : self.expand(dst.sizes());
    at::assert_no_partial_overlap(dst, source);
    if (source.is_privateuseone() && dst.is_privateuseone()) {
        copy_across(source, dst);
    } else if (source.is_cpu()) {
        copy_to_device(source, dst, non_blocking);
    } else if (dst.is_cpu()) {
        copy_to_host(source, dst, non_blocking);
    } else {
        // Between two kinds of accelerator, through the host.
        const at::Tensor host = host_staging(source.cpu(), at::empty_like(dst, dst.options().device(c10::kCPU)));
        dst.copy_(host);
    }
    return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
    at::native::resize_output(dst, self.sizes());
    return copy_from(self, dst, false);
}

c10::Scalar local_scalar_dense(const at::Tensor& self) {
    TORCH_CHECK(self.numel() > 0, "_local_scalar_dense: Empty tensor not supported");
    return host_image(self).item();
}

}  // namespace

void register_copy(torch::Library& library) {
    diopi_copy.address = vendor_symbol(diopi_copy.name);
    library.impl("_copy_from", &copy_from);
    library.impl("_copy_from_and_resize", &copy_from_and_resize);
    library.impl("_local_scalar_dense", &local_scalar_dense);
}

void register_lazy_bits() {
    // resolve_conj copies through _copy_from, which must not resolve again: the copy honours the bits itself.
    for (const c10::DispatchKey key : {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative}) {
        torch::Library& library = new_library("aten", key);
        library.impl("_copy_from", torch::CppFunction::makeFallthrough());
        library.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
    }
}

}  // namespace dipu
