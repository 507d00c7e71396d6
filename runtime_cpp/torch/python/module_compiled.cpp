// Compiled programs in Python: a specification is a dictionary of plain values, a number that follows from the symbols a
// tuple of its place in the table.
#include "module_compiled.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include <memory>
#include <utility>

#include "compiled/function.h"
#include "device/vendor_library.h"

namespace py = pybind11;

namespace dipu {
namespace {

using compiled::FunctionSpecification;
using compiled::Island;
using compiled::IslandArgument;
using compiled::Number;
using compiled::Program;
using compiled::Result;
using compiled::Root;
using compiled::RootKind;
using compiled::Specification;
using compiled::Tangent;
using compiled::TrainingFunction;
using compiled::Value;
using compiled::View;

Number number(const py::handle& given) {
    if (py::isinstance<py::tuple>(given)) {
        return {given.cast<py::tuple>()[0].cast<int64_t>(), true};
    }
    return {given.cast<int64_t>(), false};
}

std::vector<Number> numbers(const py::handle& given) {
    std::vector<Number> result;
    for (const py::handle& item : given) {
        result.push_back(number(item));
    }
    return result;
}

RootKind root_kind(const std::string& word) {
    if (word == "input") return RootKind::kInput;
    if (word == "arena") return RootKind::kArena;
    if (word == "output") return RootKind::kOutput;
    if (word == "island") return RootKind::kIsland;
    if (word == "slot") return RootKind::kSlot;
    if (word == "zeros") return RootKind::kZeros;
    TORCH_CHECK_VALUE(word == "constant", "there is no memory of the kind '", word, "'");
    return RootKind::kConstant;
}

// (kind, index, bytes, offset)
Root root(const py::tuple& given) {
    return {root_kind(given[0].cast<std::string>()), given[1].cast<int64_t>(), number(given[2]), number(given[3])};
}

// (root, dtype, sizes, strides, offset, conjugate, negative, slot)
View view(const py::tuple& given) {
    return {given[0].cast<int64_t>(), given[1].cast<c10::ScalarType>(),
            numbers(given[2]),        numbers(given[3]),
            number(given[4]),         given[5].cast<bool>(),
            given[6].cast<bool>(),    given[7].cast<int64_t>()};
}

// (kind, value): "value" with what the schema takes, "tensor", "tensors", "number", "fraction" or "numbers"
IslandArgument island_argument(const py::tuple& given, const c10::Argument& formal) {
    const auto kind = given[0].cast<std::string>();
    IslandArgument argument{};
    if (kind == "tensor") {
        argument.kind = IslandArgument::Kind::kTensor;
        argument.tensors = {given[1].cast<int64_t>()};
    } else if (kind == "tensors") {
        argument.kind = IslandArgument::Kind::kTensors;
        argument.tensors = given[1].cast<std::vector<int64_t>>();
        const auto list = formal.type()->cast<c10::ListType>();
        argument.list_of_optional = list != nullptr && list->getElementType()->kind() == c10::TypeKind::OptionalType;
    } else if (kind == "number" || kind == "fraction") {
        argument.kind = kind == "number" ? IslandArgument::Kind::kNumber : IslandArgument::Kind::kFraction;
        argument.numbers = {number(given[1])};
        argument.tensor_of_number = formal.real_type()->isSubtypeOf(*c10::TensorType::get());
    } else if (kind == "numbers") {
        argument.kind = IslandArgument::Kind::kNumbers;
        argument.numbers = numbers(given[1]);
    } else {
        argument.kind = IslandArgument::Kind::kValue;
        // A graph may hold a number where the operator takes a tensor.
        const py::handle value = given[1];
        const bool is_number = PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr()) || PyComplex_Check(value.ptr());
        if (is_number && formal.real_type()->isSubtypeOf(*c10::TensorType::get())) {
            argument.value = compiled::number_tensor(torch::jit::toIValue(value, c10::NumberType::get()).toScalar());
            return argument;
        }
        argument.value = torch::jit::toIValue(given[1], formal.real_type());
    }
    return argument;
}

// (operator, overload, arguments, results)
Island island(const py::tuple& given) {
    const auto name = given[0].cast<std::string>(), overload = given[1].cast<std::string>();
    const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
    std::vector<IslandArgument> arguments;
    const auto& formals = op.schema().arguments();
    const py::sequence actuals = given[2];
    TORCH_CHECK(actuals.size() == formals.size(), "'", name, "' takes ", formals.size(), " arguments, not ",
                actuals.size());
    for (std::size_t i = 0; i < formals.size(); ++i) {
        arguments.push_back(island_argument(actuals[i].cast<py::tuple>(), formals[i]));
    }
    return {op, std::move(arguments), given[3].cast<std::vector<int64_t>>()};
}

// (kind, index or number): "view", "argument", "number" or "nothing"
Result result(const py::tuple& given) {
    const auto kind = given[0].cast<std::string>();
    if (kind == "view") return {Result::Kind::kView, given[1].cast<int64_t>(), {}};
    if (kind == "argument") return {Result::Kind::kArgument, given[1].cast<int64_t>(), {}};
    if (kind == "number") return {Result::Kind::kNumber, 0, number(given[1])};
    return {Result::Kind::kNothing, 0, {}};
}

template <class T, class Read>
std::vector<T> each(const py::handle& items, const Read& read) {
    std::vector<T> result;
    for (const py::handle& item : items) {
        result.push_back(read(item.cast<py::tuple>()));
    }
    return result;
}

Specification specification(const py::dict& given) {
    Specification result;
    result.library = given["library"].cast<std::string>();
    result.device = static_cast<c10::DeviceIndex>(given["device"].cast<int>());
    result.arguments = given["arguments"].cast<int64_t>();
    result.symbols = given["symbols"].cast<std::vector<int64_t>>();
    result.numbers = given["numbers"].cast<int64_t>();
    result.arena_bytes = number(given["arena_bytes"]);
    result.roots = each<Root>(given["roots"], root);
    result.views = each<View>(given["views"], view);
    result.islands = each<Island>(given["islands"], island);
    result.substitutes = each<Island>(given["substitutes"], island);
    result.results = each<Result>(given["results"], dipu::result);
    result.constants = given["constants"].cast<std::vector<at::Tensor>>();
    result.streams = given["streams"].cast<int64_t>();
    result.events = given["events"].cast<int64_t>();
    result.replays = given["replays"].cast<bool>();
    result.held = given["held"].cast<std::vector<int64_t>>();
    result.written = given["written"].cast<std::vector<int64_t>>();
    result.visible = given["visible"].cast<int64_t>();
    result.slots = given["slots"].cast<int64_t>();
    result.instructions = given["instructions"].cast<std::vector<std::string>>();
    return result;
}

Value argument(const py::handle& given) {
    if (THPVariable_Check(given.ptr())) {
        return THPVariable_Unpack(given.ptr());
    }
    if (given.is_none()) {
        return std::monostate();
    }
    return given.cast<int64_t>();
}

std::vector<Value> values(const py::handle& arguments) {
    std::vector<Value> result;
    result.reserve(py::len(arguments));
    for (const py::handle& item : arguments) {
        result.push_back(argument(item));
    }
    return result;
}

py::list objects(std::vector<Value> values) {
    py::list result(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (auto* const tensor = std::get_if<at::Tensor>(&values[i])) {
            result[i] = py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(*tensor)));
        } else if (const auto* const value = std::get_if<int64_t>(&values[i])) {
            result[i] = py::int_(*value);
        } else {
            result[i] = py::none();
        }
    }
    return result;
}

// Takes the tensors out of the list, as callers of compiled functions expect.
py::list run(Program& program, const py::list& arguments) {
    std::vector<Value> given = values(arguments);
    if (PyList_SetSlice(arguments.ptr(), 0, PyList_GET_SIZE(arguments.ptr()), nullptr) != 0) {
        throw py::error_already_set();
    }
    std::vector<Value> results;
    const torch::PyWarningHandler warnings;
    {
        const py::gil_scoped_release unlocked;
        results = program.run(std::move(given));
    }
    return objects(std::move(results));
}

py::list call(TrainingFunction& function, const py::args& arguments) {
    std::vector<Value> given = values(arguments);
    std::vector<Value> results;
    const torch::PyWarningHandler warnings;
    {
        const py::gil_scoped_release unlocked;
        results = function.call(std::move(given));
    }
    return objects(std::move(results));
}

// (output, sizes, strides)
Tangent tangent(const py::tuple& given) {
    return {given[0].cast<int64_t>(), given[1].cast<std::vector<int64_t>>(), given[2].cast<std::vector<int64_t>>()};
}

FunctionSpecification function_specification(const py::dict& given) {
    FunctionSpecification result;
    result.outputs = given["outputs"].cast<int64_t>();
    result.checked = given["checked"].cast<int64_t>();
    result.tangents = each<Tangent>(given["tangents"], tangent);
    result.gradients = given["gradients"].cast<std::vector<int64_t>>();
    result.written = given["written"].cast<std::vector<int64_t>>();
    result.deterministic = given["deterministic"].cast<bool>();
    return result;
}

}  // namespace

void bind_compiled(py::module_& m) {
    py::class_<Program, std::shared_ptr<Program>>(m, "CompiledProgram")
        .def(py::init([](const py::dict& given) { return std::make_shared<Program>(specification(given)); }))
        .def("run", &run)
        .def("view", &Program::view)
        .def("arena_bytes", &Program::arena_bytes)
        // How many runs were recorded, how many one launch did, how many were done as they are, and why no more are recorded;
        // nothing where the program does not record.
        .def("replays",
             [](const Program& program) -> py::object {
                 const compiled::Replays* const found = program.replays();
                 if (found == nullptr) {
                     return py::none();
                 }
                 return py::dict(py::arg("recorded") = found->recorded(), py::arg("launched") = found->launched(),
                                 py::arg("issued") = found->issued(), py::arg("refusal") = found->refusal());
             })
        .def("instructions", [](const Program& program) { return program.specification().instructions; })
        .def("set_watch", [](Program& program, const py::object& watch) {
            if (watch.is_none()) {
                program.set_watch(nullptr);
                return;
            }
            const auto kept = std::make_shared<py::object>(watch);
            program.set_watch([kept](int64_t instruction) {
                const py::gil_scoped_acquire lock;
                (*kept)(instruction);
            });
        });
    py::class_<TrainingFunction, c10::intrusive_ptr<TrainingFunction>>(m, "CompiledFunction")
        .def(py::init([](std::shared_ptr<Program> forward, std::shared_ptr<Program> backward, const py::dict& given) {
            return c10::make_intrusive<TrainingFunction>(std::move(forward), std::move(backward),
                                                         function_specification(given));
        }))
        .def("__call__", &call);
    m.def("device_records", &compiled::Replays::are_served);
    m.def("vendor_has", [](const std::string& name) { return vendor_symbol(name.c_str()) != nullptr; });
}

}  // namespace dipu
