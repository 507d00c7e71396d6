// Suppression of boxes that overlap a better one: all pairs are compared side by side, then one team walks the boxes
// from the best one down.
#include <diopi/diopirt.h>

#include "boxes.h"
#include "core/team.h"
#include "polygon.h"
#include "sorting/sorting.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace launch = diopi::launch;

namespace {

// One bit for each pair of ranks: whether the first, if kept, excludes the second.
struct Exclusions {
    uint64_t* words;
    int64_t count;
    int64_t row_words;
};

template <class Excludes>
struct CompareTask {
    Exclusions exclusions;
    const int64_t* order;  // boxes by rank; null where they are in order
    Excludes excludes;

    DIOPI_HD int64_t box(int64_t rank) const { return order == nullptr ? rank : order[rank]; }

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t rank = i / exclusions.row_words, first = i % exclusions.row_words * 64;
        uint64_t bits = 0;
        for (int64_t other = first > rank ? first : rank + 1; other < first + 64 && other < exclusions.count; ++other) {
            if (excludes(box(rank), box(other))) bits |= uint64_t{1} << (other - first);
        }
        exclusions.words[i] = bits;
    }
};

// Lists the ranks that no kept one excludes; the row of a kept one is joined to those before it. Each thread of a team
// has its own words, and all of them settle the ranks of one word together.
struct KeepTask {
    Exclusions exclusions;
    uint64_t* excluded;
    int64_t* kept;
    int64_t* kept_count;

    DIOPI_HD void operator()(int64_t, const Team& team = {}) const {
        const int64_t words = exclusions.row_words;
        for (int64_t w = team.rank(); w < words; w += team.size()) excluded[w] = 0;
        int64_t found = 0, own = team.rank();  // of the words of this thread, the first that is not settled
        for (int64_t word = 0; word < words; ++word) {
            uint64_t out = team.reduce(own == word ? excluded[word] : uint64_t{0}, Plus{});
            if (own == word) own += team.size();
            for (int64_t rank = word * 64; rank < word * 64 + 64 && rank < exclusions.count; ++rank) {
                if ((out >> (rank % 64) & 1) != 0) continue;
                if (team.rank() == 0) kept[found] = rank;
                ++found;
                out |= exclusions.words[rank * words + word];
                for (int64_t w = own; w < words; w += team.size()) excluded[w] |= exclusions.words[rank * words + w];
            }
        }
        if (team.rank() == 0) *kept_count = found;
    }
};

struct Kept {
    int64_t* ranks;
    int64_t* count;
};

template <class Excludes>
Kept kept_boxes(Context ctx, int64_t count, const int64_t* order, const Excludes& excludes) {
    const int64_t row_words = (count + 63) / 64;
    const Exclusions exclusions{workspace_of<uint64_t>(ctx, count * row_words), count, row_words};
    for_each(ctx, count * row_words, CompareTask<Excludes>{exclusions, order, excludes});
    const Kept kept{workspace_of<int64_t>(ctx, count), workspace_of<int64_t>(ctx, 1)};
    for_each_by_teams(ctx, 1, row_words,
                      KeepTask{exclusions, workspace_of<uint64_t>(ctx, row_words), kept.ranks, kept.count});
    return kept;
}

struct ListTask {
    TensorView out;
    const int64_t* ranks;
    const int64_t* order;
    DIOPI_HD void operator()(int64_t i) const {
        store_as(out, i * out.strides[0], order == nullptr ? ranks[i] : order[ranks[i]]);
    }
};

// Waits for the number of kept boxes, which is the length of the result.
void list_kept(Context ctx, Tensor* out, const Kept& kept, const int64_t* order) {
    int64_t count = 0;
    check(launch::copy_to_host(stream_of(ctx), &count, kept.count, sizeof(count)),
          "a count could not be read back from the device");
    const TensorView result = allocated(ctx, out, &count, 1, diopi_dtype_int64);
    for_each(ctx, count, ListTask{result, kept.ranks, order});
}

// How many scores come before one: greater ones, and equal ones that stand before it.
struct RankTask {
    const double* scores;
    int64_t count;
    int64_t* order;

    DIOPI_HD void operator()(int64_t i) const {
        int64_t rank = 0;
        for (int64_t j = 0; j < count; ++j) {
            const bool before = less(scores[i], scores[j]) || (j < i && !less(scores[j], scores[i]));
            rank += before ? 1 : 0;
        }
        order[rank] = i;
    }
};

const int64_t* falling_order(Context ctx, const TensorView& scores, int64_t count) {
    require(scores.ndim == 1 && scores.numel == count, "%lld boxes have %lld scores", count, scores.numel);
    auto* order = workspace_of<int64_t>(ctx, count);
    for_each(ctx, count, RankTask{contiguous_as(ctx, scores, diopi_dtype_float64).as<double>(), count, order});
    return order;
}

struct UprightOverlap {
    Boxes boxes;
    double threshold;
    double offset;  // of the sides

    DIOPI_HD bool operator()(int64_t first, int64_t second) const {
        return upright_overlap(boxes[first], boxes[second], offset, false) > threshold;
    }
};

void suppress_upright(Context ctx, Tensor* out, ConstTensor boxes, ConstTensor scores, double threshold,
                      double offset) {
    const UprightOverlap excludes{boxes_of(ctx, boxes, "boxes", 4), threshold, offset};
    const int64_t* order = falling_order(ctx, required_view(scores, "scores"), excludes.boxes.count);
    list_kept(ctx, out, kept_boxes(ctx, excludes.boxes.count, order, excludes), order);
}

struct RotatedOverlap {
    Boxes boxes;           // sorted already
    const int64_t* order;  // of the labels
    const double* labels;  // null where boxes of all labels compete
    double threshold;

    DIOPI_HD bool operator()(int64_t first, int64_t second) const {
        if (labels != nullptr && labels[order[first]] != labels[order[second]]) return false;
        return overlap(rotated_box(boxes[first]), rotated_box(boxes[second]), false) > threshold;
    }
};

// Boxes in space seen from above.
struct AboveOverlap {
    Boxes boxes;
    double threshold;
    bool turned;

    DIOPI_HD bool operator()(int64_t first, int64_t second) const {
        return overlap(box_from_above(boxes[first], turned), box_from_above(boxes[second], turned), false) > threshold;
    }
};

struct KeptInPlaceTask {
    TensorView keep;
    Kept kept;
    DIOPI_HD void operator()(int64_t i) const {
        store_as(keep, i * keep.strides[0], i < *kept.count ? kept.ranks[i] : int64_t{-1});
    }
};

struct StoreCountTask {
    TensorView out;
    const int64_t* count;
    DIOPI_HD void operator()(int64_t) const { store_as(out, 0, *count); }
};

void suppress_from_above(Context ctx, Tensor keep, Tensor keep_num, ConstTensor boxes, double threshold, bool turned) {
    const TensorView places = required_view(keep, "keep"), number = required_view(keep_num, "keep_num");
    const AboveOverlap excludes{boxes_of(ctx, boxes, "boxes", 7), threshold, turned};
    require(places.ndim == 1 && places.numel == excludes.boxes.count, "'keep' has no room for all boxes");
    require(number.numel == 1, "'keep_num' has %lld elements, expected one", number.numel);
    require_storable(places);
    require_storable(number);
    const Kept kept = kept_boxes(ctx, excludes.boxes.count, nullptr, excludes);
    for_each(ctx, places.numel, KeptInPlaceTask{places, kept});
    for_each(ctx, 1, StoreCountTask{number, kept.count});
}

}  // namespace

diopiError_t diopiNms(Context ctx, Tensor* out, ConstTensor boxes, ConstTensor confidence, double iou_threshold) {
    return guarded([&] { suppress_upright(ctx, out, boxes, confidence, iou_threshold, 0); });
}

diopiError_t diopiNmsMmcv(Context ctx, Tensor* out, ConstTensor dets, ConstTensor scores, double iou_threshold,
                          int64_t offset) {
    return guarded([&] { suppress_upright(ctx, out, dets, scores, iou_threshold, static_cast<double>(offset)); });
}

// `order` has sorted the boxes already: neither they nor their scores are needed.
diopiError_t diopiNmsRotatedMmcv(Context ctx, Tensor* out, ConstTensor, ConstTensor, ConstTensor order,
                                 ConstTensor dets_sorted, ConstTensor labels, float iou_threshold, bool multi_label) {
    return guarded([&] {
        const Boxes boxes = boxes_of(ctx, dets_sorted, "dets_sorted", 5);
        const TensorView places = contiguous_as(ctx, required_view(order, "order"), diopi_dtype_int64);
        require(places.numel == boxes.count, "'order' names %lld of %lld boxes", places.numel, boxes.count);
        RotatedOverlap excludes{boxes, places.as<int64_t>(), nullptr, iou_threshold};
        if (multi_label) {
            const TensorView numbers = required_view(labels, "labels");
            require(numbers.numel == boxes.count, "%lld boxes have %lld labels", boxes.count, numbers.numel);
            excludes.labels = contiguous_as(ctx, numbers, diopi_dtype_float64).as<double>();
        }
        list_kept(ctx, out, kept_boxes(ctx, boxes.count, nullptr, excludes), excludes.order);
    });
}

diopiError_t diopiIou3dNms3dMmcv(Context ctx, Tensor keep, Tensor keep_num, ConstTensor boxes,
                                 float nms_overlap_thresh) {
    return guarded([&] { suppress_from_above(ctx, keep, keep_num, boxes, nms_overlap_thresh, true); });
}

diopiError_t diopiIou3dNms3dNormalMmcv(Context ctx, Tensor keep, Tensor keep_num, ConstTensor boxes,
                                       float nms_overlap_thresh) {
    return guarded([&] { suppress_from_above(ctx, keep, keep_num, boxes, nms_overlap_thresh, false); });
}

}  // namespace impl::portable
