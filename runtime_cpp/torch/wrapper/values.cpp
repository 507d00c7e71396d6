// The words of torch that the contract has enumerators for.
#include "values.h"

#include <c10/util/Exception.h>

namespace dipu {

diopiRoundMode_t round_mode(const std::optional<std::string_view>& mode) {
    if (!mode.has_value()) {
        return RoundModeNone;
    }
    if (*mode == "trunc") {
        return RoundModeTrunc;
    }
    TORCH_CHECK(*mode == "floor", "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '",
                *mode, "'");
    return RoundModeFloor;
}

diopiMemoryFormat_t memory_format(const std::optional<at::MemoryFormat>& format) {
    switch (format.value_or(at::MemoryFormat::Preserve)) {
        case at::MemoryFormat::Contiguous: return Contiguous;
        case at::MemoryFormat::ChannelsLast: return ChannelsLast;
        case at::MemoryFormat::ChannelsLast3d: return ChannelsLast3d;
        default: return Preserve;
    }
}

const at::Tensor& first_of(const at::ITensorListRef& tensors) {
    TORCH_CHECK(tensors.size() != 0, "expected a non-empty list of tensors");
    return *tensors.begin();
}

}  // namespace dipu
