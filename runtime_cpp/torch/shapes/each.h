#pragma once

#include "shapes.h"

namespace dipu::shape {

// The number at `index` of a list in which a single number stands for all.
inline int64_t each(Sizes values, std::size_t index) { return values.size() == 1 ? values[0] : values[index]; }

}  // namespace dipu::shape
