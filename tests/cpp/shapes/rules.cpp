// The shape rules of windows, norms and factors by name, with every argument as a list of numbers, for tests in Python.
#include "shapes.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

namespace shape = dipu::shape;
using shape::Shape;
using shape::Sizes;
using Lists = std::vector<Sizes>;

constexpr const char* kModes[] = {"reduced", "complete", "r"};

Shape meshgrid(const Lists& lengths) {
    std::vector<at::Tensor> sequences;
    for (Sizes length : lengths) sequences.push_back(at::empty(length));
    return shape::meshgrid(at::ITensorListRef(sequences));
}

const std::map<std::string, std::function<Shape(const Lists&)>> kRules{
    {"conv_output", [](const Lists& a) { return shape::conv_output(a[0], a[1], a[2], a[3], a[4]); }},
    {"conv_transpose_output",
     [](const Lists& a) { return shape::conv_transpose_output(a[0], a[1], a[2], a[3], a[4], a[5][0], a[6]); }},
    {"pool_output", [](const Lists& a) { return shape::pool_output(a[0], a[1], a[2], a[3], a[4], a[5][0] != 0); }},
    {"pooled",
     [](const Lists& a) {
         return shape::pooled(a[0], a[8][0] != 0 ? "max" : "avg", a[1], a[2], a[3], a[4], a[5][0] != 0, a[6][0] != 0,
                              a[7]);
     }},
    {"columns", [](const Lists& a) { return shape::columns(a[0], a[1], a[2], a[3], a[4]); }},
    {"from_columns", [](const Lists& a) { return shape::from_columns(a[0], a[1], a[2]); }},
    {"inverse",
     [](const Lists& a) { return shape::inverse(a[0], a[1].empty() ? std::nullopt : std::optional(a[1][0])); }},
    {"meshgrid", meshgrid},
    {"qr_q", [](const Lists& a) { return shape::qr_q(a[0], kModes[a[1][0]]); }},
    {"qr_r", [](const Lists& a) { return shape::qr_r(a[0], kModes[a[1][0]]); }},
    {"sampled", [](const Lists& a) { return shape::sampled(a[0], a[1]); }},
    {"statistics_from", [](const Lists& a) { return shape::statistics_from(a[0], a[1][0]); }},
};

}  // namespace

struct List {
    const int64_t* data;
    int64_t size;
};

// How many lengths the shape has, which are written to `out`; -1 where the rule refuses its arguments.
extern "C" int64_t shape_by_rule(const char* rule, const List* lists, int64_t count, int64_t* out) {
    try {
        Lists given;
        for (int64_t i = 0; i < count; ++i) given.emplace_back(lists[i].data, static_cast<size_t>(lists[i].size));
        const Shape found = kRules.at(rule)(given);
        std::copy(found.begin(), found.end(), out);
        return static_cast<int64_t>(found.size());
    } catch (const std::exception&) {
        return -1;
    }
}
