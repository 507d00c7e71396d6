// Feature maps moved about: each element of the output is one of the input, or zero.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "core/unit.h"
#include "space/bounds.h"
#include "space/element.h"
#include "space/index.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

constexpr int64_t kNowhere = -1;

// `source` says from which offset of the input an element of the output comes, or kNowhere.
template <class U, class Source>
struct MoveTask {
    using Value = typename Unit<U>::type;

    Value* target;
    const Value* input;
    Space<1> space;
    Source source;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t from = source.offset(i);
        target[space.offset(i)] = from == kNowhere ? Value(0) : input[from];
    }
};

template <class Source>
void move_elements(Context ctx, const TensorView& out, const TensorView& input, const Source& source) {
    if (out.dtype != input.dtype) fail_dtype(input.dtype);
    dispatch_unit(out.dtype, [&](auto unit) {
        using U = typename decltype(unit)::plain;
        using Task = MoveTask<U, Source>;
        for_each(ctx, out.numel,
                 Task{out.as<typename Task::Value>(), input.as<const typename Task::Value>(), space_of(out), source});
    });
}

DIOPI_HD inline bool within(int64_t position, int64_t size) { return position >= 0 && position < size; }

struct WindowSource {
    TensorView image, rows, columns;
    int64_t places;
    int64_t kernel_h, kernel_w, pad_h, pad_w;

    DIOPI_HD int64_t offset(int64_t i) const {
        const int64_t place = i % places, row = i / places;
        const int64_t y = number_at<int64_t>(rows, place) + row / kernel_w % kernel_h - pad_h;
        const int64_t x = number_at<int64_t>(columns, place) + row % kernel_w - pad_w;
        if (!within(y, image.sizes[2]) || !within(x, image.sizes[3])) return kNowhere;
        return offset_of(image, 0, row / kernel_w / kernel_h, y, x);
    }
};

// The places differ, so that no two tasks meet.
template <class T>
struct PutColumnTask {
    Elements<T, 4> image;
    Elements<const T, 2> columns;
    TensorView rows_at, columns_at;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<2> at = columns.position(i);
        const auto y = number_at<int64_t>(rows_at, at[1]), x = number_at<int64_t>(columns_at, at[1]);
        if (within(y, image.sizes[2]) && within(x, image.sizes[3])) image(0, at[0], y, x) = columns(at[0], at[1]);
    }
};

// A mask around each pixel says how much that one collects from, or distributes to, every other pixel.
struct Attention {
    int64_t height, width;
    int64_t mask_height, mask_width, half_height, half_width;
    bool collects;

    // `maps` is [images, pixels, rows, columns], the whole map of each pixel.
    DIOPI_HD int64_t in_maps(const TensorView& maps, int64_t image, const Position<2>& own,
                             const Position<2>& other) const {
        const Position<2>&seen = collects ? own : other, &mapped = collects ? other : own;
        return offset_of(maps, image, mapped[0] * width + mapped[1], seen[0], seen[1]);
    }
};

struct MaskSource {
    TensorView masks;  // [images, places of the mask, rows, columns]
    Attention form;

    DIOPI_HD int64_t offset(int64_t i) const {
        const int64_t sizes[] = {masks.sizes[0], form.height, form.width, form.height, form.width};
        const Position<5> at = position_in<5>(sizes, i);
        const Position<2> mapped{{at[1], at[2]}}, seen{{at[3], at[4]}};
        const Position<2>&own = form.collects ? seen : mapped, &other = form.collects ? mapped : seen;
        const int64_t row = other[0] - own[0] + form.half_height, column = other[1] - own[1] + form.half_width;
        if (!within(row, form.mask_height) || !within(column, form.mask_width)) return kNowhere;
        return offset_of(masks, at[0], row * form.mask_width + column, own[0], own[1]);
    }
};

struct MapSource {
    TensorView maps;
    Attention form;

    DIOPI_HD int64_t offset(int64_t i) const {
        const int64_t sizes[] = {maps.sizes[0], form.mask_height, form.mask_width, form.height, form.width};
        const Position<5> at = position_in<5>(sizes, i);
        const Position<2> own{{at[3], at[4]}};
        const Position<2> other{{own[0] + at[1] - form.half_height, own[1] + at[2] - form.half_width}};
        if (!within(other[0], form.height) || !within(other[1], form.width)) return kNowhere;
        return form.in_maps(maps, at[0], own, other);
    }
};

// Whole maps on the one side, masks on the other.
Attention attention_of(const TensorView& maps, const TensorView& masks, int64_t images, int64_t psa_type,
                       Attention form) {
    require(psa_type == 0 || psa_type == 1, "'psa_type' is %lld, expected 0 or 1", psa_type);
    require_sizes(maps, "the whole maps", {images, form.height * form.width, form.height, form.width});
    require_sizes(masks, "the masks", {images, form.mask_height * form.mask_width, form.height, form.width});
    form.collects = psa_type == 0;
    return form;
}

struct ShiftSource {
    TensorView input, shift;
    int64_t sign;

    DIOPI_HD int64_t offset(int64_t i) const {
        const Position<4> at = position_in<4>(input.sizes, i);
        const int64_t group = at[2] / (input.sizes[2] / shift.sizes[1]);
        const int64_t time = at[1] - sign * number_at<int64_t>(shift, at[0], group);
        return within(time, input.sizes[1]) ? offset_of(input, at[0], time, at[2], at[3]) : kNowhere;
    }
};

void shift_in_time(Context ctx, Tensor output, ConstTensor input, ConstTensor shift, int64_t sign) {
    const TensorView source = required_view(input, "input"), steps = required_view(shift, "shift");
    const TensorView result = required_view(output, "output");
    require(source.ndim == 4 && result.same_sizes(source),
            "a map of four dimensions keeps its shape when it is shifted");
    require(steps.ndim == 2 && steps.sizes[0] == source.sizes[0] && steps.sizes[1] > 0 &&
                source.sizes[2] % steps.sizes[1] == 0,
            "'shift' has no number for each image and group of channels");
    require_index_dtype(steps);
    move_elements(ctx, result, source, ShiftSource{source, steps, sign});
}

}  // namespace

diopiError_t diopiMaskedIm2colMmcv(Context ctx, Tensor col, ConstTensor im, ConstTensor mask_h_idx,
                                   ConstTensor mask_w_idx, int64_t kernel_h, int64_t kernel_w, int64_t pad_h,
                                   int64_t pad_w) {
    return guarded([&] {
        const TensorView image = required_view(im, "im");
        require(image.ndim == 4 && image.sizes[0] == 1, "'im' is no single image");
        require(kernel_h > 0 && kernel_w > 0, "a window has no size");
        const TensorView rows = required_view(mask_h_idx, "mask_h_idx");
        const TensorView columns = sized_view(mask_w_idx, "mask_w_idx", {rows.numel});
        const TensorView result = sized_view(col, "col", {image.sizes[1] * kernel_h * kernel_w, rows.numel});
        move_elements(ctx, result, image,
                      WindowSource{image, rows, columns, rows.numel, kernel_h, kernel_w, pad_h, pad_w});
    });
}

diopiError_t diopiMaskedCol2imMmcv(Context ctx, Tensor im, ConstTensor col, ConstTensor mask_h_idx,
                                   ConstTensor mask_w_idx, int64_t height, int64_t width, int64_t channels) {
    return guarded([&] {
        const TensorView image = sized_view(im, "im", {1, channels, height, width});
        const TensorView rows = required_view(mask_h_idx, "mask_h_idx");
        const TensorView columns = sized_view(mask_w_idx, "mask_w_idx", {rows.numel});
        const TensorView values = sized_view(col, "col", {channels, rows.numel});
        fill_zero(ctx, image);
        for_each_typed<Float, PutColumnTask>(ctx, image.dtype, values.numel, Argument{image, "im"},
                                             Argument{values, "col"}, rows, columns);
    });
}

diopiError_t diopiPsamaskMmcv(Context ctx, Tensor output, ConstTensor input, int64_t psa_type, int64_t num_,
                              int64_t h_feature, int64_t w_feature, int64_t h_mask, int64_t w_mask, int64_t half_h_mask,
                              int64_t half_w_mask) {
    return guarded([&] {
        const TensorView maps = required_view(output, "output"), masks = required_view(input, "input");
        const Attention form{h_feature, w_feature, h_mask, w_mask, half_h_mask, half_w_mask, false};
        move_elements(ctx, maps, masks, MaskSource{masks, attention_of(maps, masks, num_, psa_type, form)});
    });
}

diopiError_t diopiPsamaskBackwardMmcv(Context ctx, Tensor grad_input, ConstTensor grad_output, int64_t psa_type,
                                      int64_t num_, int64_t h_feature, int64_t w_feature, int64_t h_mask,
                                      int64_t w_mask, int64_t half_h_mask, int64_t half_w_mask) {
    return guarded([&] {
        const TensorView maps = required_view(grad_output, "grad_output"),
                         masks = required_view(grad_input, "grad_input");
        const Attention form{h_feature, w_feature, h_mask, w_mask, half_h_mask, half_w_mask, false};
        move_elements(ctx, masks, maps, MapSource{maps, attention_of(maps, masks, num_, psa_type, form)});
    });
}

diopiError_t diopiTinShiftMmcv(Context ctx, Tensor output, ConstTensor input, ConstTensor shift) {
    return guarded([&] { shift_in_time(ctx, output, input, shift, 1); });
}

diopiError_t diopiTinShiftBackwardMmcv(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor shift) {
    return guarded([&] { shift_in_time(ctx, grad_input, grad_output, shift, -1); });
}

}  // namespace impl::portable
