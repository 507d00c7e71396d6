// Walks the operands of an elementwise launch in cache-sized chunks and converts what needs it.
#include "pointwise.h"

#include <algorithm>

#include "copy/convert.h"
#include "space/index.h"
#include "space/runs.h"
#include "space/strides.h"

namespace diopi::kernels {

ElementwiseCall::ElementwiseCall(diopiTensorHandle_t out, std::initializer_list<ElementwiseArgument> arguments) {
    require(out != nullptr, "the tensor 'out' is null");
    read_view(out, views[0]);
    for (const ElementwiseArgument& argument : arguments) {
        require(!argument.null, "an argument of an elementwise kernel is null");
        if (argument.kind == ElementwiseArgument::Kind::tensor) {
            read_view(argument.tensor, views[++tensors]);
            result_type.add(views[tensors]);
        } else {
            if (argument.kind == ElementwiseArgument::Kind::number) result_type.add(argument.scalar);
            values[scalars++] = argument.scalar;
        }
    }
}

#if !defined(__CUDACC__)

namespace {

constexpr int64_t kChunk = 1024;   // elements that are converted at a time
constexpr int64_t kChunkRows = 256;

struct Pointwise {
    struct Operand {
        void* data;
        ConvertRun convert;   // between the operand's dtype and the expression's
        bool converts;        // they differ
        int32_t size;         // bytes of an element in memory
        int32_t buffer_size;  // bytes of an element in the expression
    };

    ExpressionCode loop;
    int32_t inputs;
    Operand operands[kMaxInputs + 1];  // the output first
    Space<kMaxInputs + 1> space;
    double constants[kMaxInputs];

    Pointwise(const ExpressionForm& form, const TensorView* views, int count) : loop(form.code), inputs(count) {
        TensorView none = undefined_view();
        none.ndim = 0;
        const TensorView* used[kMaxInputs + 1];
        for (int n = 0; n <= kMaxInputs; ++n) used[n] = n <= inputs ? &views[n] : &none;
        space = broadcast_space<kMaxInputs + 1>(views[0], used, Visit::any_order);
        for (int n = 0; n <= inputs; ++n) {
            const diopiDtype_t given = views[n].dtype, inside = n == 0 ? form.result : form.compute;
            operands[n] = {views[n].data, n == 0 ? converter(inside, given) : converter(given, inside), given != inside,
                           static_cast<int32_t>(element_size(given)), static_cast<int32_t>(element_size(inside))};
        }
    }
};

// A block of `rows` rows times `columns` elements, the unit in which operands are converted.
struct Block {
    int64_t rows;
    int64_t columns;
    int64_t elements() const { return rows * columns; }
};

// Steps through the rows of a space: all dimensions but the fastest.
class RowCursor {
public:
    RowCursor(const Space<kMaxInputs + 1>& space, int operands, int64_t row) : space_(space), operands_(operands) {
        for (int d = space.ndim - 2; d >= 0; --d) {
            position_[d] = row % space.sizes[d];
            row /= space.sizes[d];
            for (int n = 0; n < operands; ++n) offsets_[n] += position_[d] * space.strides[n][d];
        }
    }

    // Where the next `count` rows of each operand begin; no more than are left.
    void take(int64_t count, int64_t (*begins)[kChunkRows]) {
        const int inner = space_.ndim - 2;
        for (int64_t row = 0; row < count;) {
            const int64_t run = inner < 0 ? count : std::min(count - row, space_.sizes[inner] - position_[inner]);
            for (int n = 0; n < operands_; ++n) {
                const int64_t begin = offsets_[n], stride = inner < 0 ? 0 : space_.strides[n][inner];
                for (int64_t k = 0; k < run; ++k) begins[n][row + k] = begin + k * stride;
            }
            row += run;
            advance(inner, run);
        }
    }

private:
    void advance(int d, int64_t steps) {
        for (; d >= 0; --d, steps = 1) {
            for (int n = 0; n < operands_; ++n) offsets_[n] += steps * space_.strides[n][d];
            position_[d] += steps;
            if (position_[d] < space_.sizes[d]) return;
            for (int n = 0; n < operands_; ++n) offsets_[n] -= space_.strides[n][d] * space_.sizes[d];
            position_[d] = 0;
        }
    }

    const Space<kMaxInputs + 1>& space_;
    int operands_;
    int64_t position_[kMaxDims] = {};
    int64_t offsets_[kMaxInputs + 1] = {};
};

// Some rows, or a piece of one long row.
struct Part {
    int64_t first_row, last_row;
    int64_t first_column, last_column;
};

class Walk {
public:
    explicit Walk(const Pointwise& plan) : plan_(plan), operands_(plan.inputs + 1) {}

    void run(const Part& part) {
        RowCursor cursor(plan_.space, operands_, part.first_row);
        const int64_t width = part.last_column - part.first_column;
        const int64_t rows_per_block = std::min(kChunkRows, width >= kChunk ? 1 : kChunk / width);
        for (int64_t row = part.first_row; row < part.last_row;) {
            const int64_t count = std::min(part.last_row - row, rows_per_block);
            cursor.take(count, row_offsets_);
            for (int64_t column = part.first_column; column < part.last_column; column += kChunk) {
                block(Block{count, std::min(part.last_column - column, kChunk)}, column);
            }
            row += count;
        }
    }

private:
    char* address(int operand, int64_t row, int64_t column) const {
        const int64_t offset = row_offsets_[operand][row] + column * plan_.space.inner_stride(operand);
        return static_cast<char*>(plan_.operands[operand].data) + offset * plan_.operands[operand].size;
    }

    // True when the block is one run of memory in the expression's own dtype.
    bool direct(int operand, const Block& shape) const {
        return !plan_.operands[operand].converts && one_run(operand, shape);
    }

    bool one_run(int operand, const Block& shape) const {
        if (shape.columns > 1 && plan_.space.inner_stride(operand) != 1) return false;
        return rows_are_apart(operand, shape, shape.columns);
    }

    bool rows_are_apart(int operand, const Block& shape, int64_t elements) const {
        const int64_t* offsets = row_offsets_[operand];
        int64_t differs = 0;  // no branch: the loop is vectors
        for (int64_t row = 1; row < shape.rows; ++row) differs |= offsets[row] - offsets[row - 1] - elements;
        return differs == 0;
    }

    void block(const Block& shape, int64_t column) {
        const void* inputs[kMaxInputs];
        for (int n = 1; n < operands_; ++n) {
            inputs[n - 1] = direct(n, shape) ? address(n, 0, column) : loaded(n, shape, column);
        }
        if (direct(0, shape)) {
            plan_.loop(inputs, plan_.constants, address(0, 0, column), 0, shape.elements());
            return;
        }
        plan_.loop(inputs, plan_.constants, buffers_[0], 0, shape.elements());
        if (one_run(0, shape)) {
            plan_.operands[0].convert(buffers_[0], 1, address(0, 0, column), 1, shape.elements());
            return;
        }
        const int64_t row_bytes = shape.columns * plan_.operands[0].buffer_size;
        for (int64_t row = 0; row < shape.rows; ++row) {
            plan_.operands[0].convert(buffers_[0] + row * row_bytes, 1, address(0, row, column),
                                      plan_.space.inner_stride(0), shape.columns);
        }
    }

    const void* loaded(int operand, const Block& shape, int64_t column) {
        const Pointwise::Operand& side = plan_.operands[operand];
        const int64_t stride = plan_.space.inner_stride(operand);
        const void* first = address(operand, 0, column);
        char* buffer = buffers_[operand];
        // One row for the whole block, or one value, and often for the blocks that follow, which are no larger.
        const bool repeats = shape.rows == 1 || (row_offsets_[operand][1] == row_offsets_[operand][0] &&
                                                 rows_are_apart(operand, shape, 0));
        if (repeats && kept_[operand] == first) return buffer;
        kept_[operand] = repeats ? first : nullptr;
        if (repeats && stride == 0) {
            side.convert(first, 0, buffer, 1, shape.elements());
        } else if (one_run(operand, shape)) {
            side.convert(first, 1, buffer, 1, shape.elements());
        } else if (!side.converts) {
            dispatch_word(side.size, [&](auto word) { gather<typename decltype(word)::type>(operand, shape, column); });
        } else {
            const int64_t row_bytes = shape.columns * side.buffer_size;
            for (int64_t row = 0; row < shape.rows; ++row) {
                side.convert(address(operand, row, column), stride, buffer + row * row_bytes, 1, shape.columns);
            }
        }
        return buffer;
    }

    // Rows without a call for each.
    template <class Word>
    void gather(int operand, const Block& shape, int64_t column) {
        constexpr int64_t kFew = 8;
        const int64_t stride = plan_.space.inner_stride(operand);
        const Word* const first = static_cast<const Word*>(plan_.operands[operand].data) + column * stride;
        const int64_t* const offsets = row_offsets_[operand];
        Word* const buffer = reinterpret_cast<Word*>(buffers_[operand]);
        if (stride == 0) {
            for (int64_t row = 0; row < shape.rows; ++row)
                std::fill_n(buffer + row * shape.columns, shape.columns, first[offsets[row]]);
            return;
        }
        with_stride(stride, [=](auto step) {
            for (int64_t row = 0; row < shape.rows; ++row) {
                const Word* from = first + offsets[row];
                Word* to = buffer + row * shape.columns;
                int64_t i = 0;
                for (; i + kFew <= shape.columns; i += kFew) {  // short rows are vectors, too
                    Word few[kFew];
                    for (int64_t k = 0; k < kFew; ++k) few[k] = from[(i + k) * step];
                    for (int64_t k = 0; k < kFew; ++k) to[i + k] = few[k];
                }
                for (; i < shape.columns; ++i) to[i] = from[i * step];
            }
        });
    }

    const Pointwise& plan_;
    int operands_;
    int64_t row_offsets_[kMaxInputs + 1][kChunkRows];
    const void* kept_[kMaxInputs + 1] = {};  // the row or the value that fills the operand's buffer
    alignas(64) char buffers_[kMaxInputs + 1][kChunk * sizeof(double)];
};

// Operands that are all contiguous, of one shape and of the compute type: the usual case, and the cheapest to launch.
struct DenseExpression {
    ExpressionCode loop;
    int64_t count;
    const void* inputs[kMaxInputs];
    void* out;
    double constants[kMaxInputs];

    void operator()(int64_t part) const {
        const int64_t first = part * kRunLength;
        loop(inputs, constants, out, first, std::min(count - first, kRunLength));
    }
};

struct WholePlan {
    Pointwise plan;
    void operator()(int64_t) const {
        const int64_t columns = plan.space.inner_size();
        Walk(plan).run({0, plan.space.numel / columns, 0, columns});
    }
};

struct PartOfPlan {
    Pointwise plan;
    int64_t rows, columns;                    // of the plan
    int64_t rows_per_part, columns_per_part;  // one row, or whole rows
    int64_t parts_per_row;

    explicit PartOfPlan(const Pointwise& whole) : plan(whole) {
        columns = plan.space.inner_size();
        rows = plan.space.numel / columns;
        columns_per_part = std::min(columns, kRunLength);
        rows_per_part = kRunLength / columns_per_part;
        parts_per_row = (columns + columns_per_part - 1) / columns_per_part;
    }

    int64_t count() const { return (rows + rows_per_part - 1) / rows_per_part * parts_per_row; }

    void operator()(int64_t part) const {
        const int64_t row = part / parts_per_row * rows_per_part, column = part % parts_per_row * columns_per_part;
        Walk(plan).run(
            {row, std::min(row + rows_per_part, rows), column, std::min(column + columns_per_part, columns)});
    }
};

bool is_dense(const ElementwiseCall& call, const ExpressionForm& form) {
    bool dense = call.typed(form.compute, form.result) && call.views[0].contiguous();
    for (int i = 1; i <= call.tensors; ++i)
        dense = dense && call.views[i].same_sizes(call.views[0]) && call.views[i].contiguous();
    return dense;
}

diopiError_t launch(diopiStreamHandle_t stream, const ElementwiseCall& call, const ExpressionForm& form) {
    DenseExpression task{};
    dispatch<Any>(form.compute, [&](auto type) {
        for (int i = 0; i < call.scalars; ++i) {
            const auto value = scalar_as<typename decltype(type)::type>(call.values[i]);
            memcpy(&task.constants[i], &value, sizeof value);
        }
    });
    if (!is_dense(call, form)) return launch_pointwise(stream, form, call.views, call.tensors, task.constants);
    task.loop = form.code;
    task.count = call.views[0].numel;
    task.out = call.views[0].data;
    for (int i = 0; i < call.tensors; ++i) task.inputs[i] = call.views[i + 1].data;
    return launch::parallel_for(stream, (task.count + kRunLength - 1) / kRunLength, task);
}

}  // namespace

diopiError_t launch_pointwise(diopiStreamHandle_t stream, const ExpressionForm& form, const TensorView* views,
                              int inputs, const double* constants) {
    Pointwise plan(form, views, inputs);
    if (constants != nullptr) std::copy_n(constants, kMaxInputs, plan.constants);
    if (plan.space.numel <= kRunLength) return launch::parallel_for(stream, 1, WholePlan{plan});
    const PartOfPlan part(plan);
    return launch::parallel_for(stream, part.count(), part);
}

#endif

diopiError_t launch_elementwise(Context ctx, Tensor out, std::initializer_list<ElementwiseArgument> arguments,
                                Compute rule, const ExpressionForm* form) {
    return guarded([&] {
        const ElementwiseCall call(out, arguments);
        if (call.views[0].numel == 0) return;
        const diopiDtype_t compute = call.result_type.compute_dtype(rule, call.views[0].dtype);
        while (form->compute != compute && form->compute != kNoForm.compute) ++form;
        if (form->code == nullptr) fail_dtype(compute);
        const diopiStreamHandle_t stream = stream_of(ctx);
#if defined(__CUDACC__)
        const diopiError_t status = form->code(stream, call);
#else
        const diopiError_t status = launch(stream, call, *form);
#endif
        check_launch(status);
    });
}

}  // namespace diopi::kernels
