// Checks of index tensors: one pass that remembers the first index out of range.
#include "bounds.h"

#include <stdexcept>

#include "core/launcher.h"
#include "core/workspace.h"
#include "index.h"
#include "runs.h"

namespace diopi::kernels {
namespace {

struct Finding {
    int64_t found;  // 0 or 1
    int64_t index;
};

template <class I>
void find_out_of_range(diopiStreamHandle_t stream, const TensorView& index, int64_t low, int64_t high,
                       Finding* finding) {
    const Space<1> space = space_of(index);
    const I* values = index.as<I>();
    check(launch::single_task(
              stream,
              DIOPI_LAMBDA() {
                  *finding = Finding{0, 0};
                  const int64_t inner = space.inner_size(), stride = space.inner_stride(0);
                  for (int64_t first = 0; first < space.numel; first += inner) {
                      const I* row = values + space.offset(first);
                      for (int64_t j = 0; j < inner; ++j) {
                          const int64_t value = row[j * stride];
                          if (value >= low && value < high) continue;
                          *finding = Finding{1, value};
                          return;
                      }
                  }
              }),
          "a check of indices could not be launched");
}

}  // namespace

void require_index_dtype(const TensorView& index) {
    if (!is_in<Index>(index.dtype))
        fail(diopiDtypeNotSupported, "indices must be int64 or int32, not %s", diopiDtypeName(index.dtype));
}

void require_in_bounds(Context ctx, const TensorView& index, int64_t size, int dim, Negative negative) {
    require_index_dtype(index);
    if (index.numel == 0) return;
    const diopiStreamHandle_t stream = stream_of(ctx);
    const int64_t low = negative == Negative::from_the_end ? -size : 0;
    if (!launch::kSynchronous) {
        const Space<1> space = space_of(index);
        for_each_index(
            stream, index.numel,
            DIOPI_LAMBDA(int64_t i) { in_bounds(load_as<int64_t>(index, space.offset(i)), low, size); });
        return;
    }
    auto* finding = workspace_of<Finding>(ctx, 1);
    dispatch<Index>(index.dtype, [&](auto type) {
        find_out_of_range<typename decltype(type)::type>(stream, index, low, size, finding);
    });
#if defined(DIOPI_LAUNCHER_HAS_RECORDS)
    // What is recorded cannot be waited for: such an index ends the kernel that finds it, as on a GPU.
    if (launch::is_recorded(stream))
        return check(launch::single_task(
                         stream,
                         DIOPI_LAMBDA() {
                             if (finding->found != 0) throw std::out_of_range("an index is out of bounds");
                         }),
                     "a check of indices could not be launched");
#endif
    Finding result{};
    check(launch::copy_to_host(stream, &result, finding, sizeof(result)),
          "a result could not be read back from the device");
    require(result.found == 0, "index %lld is out of bounds for dimension %d with size %lld", result.index, dim, size);
}

}  // namespace diopi::kernels
