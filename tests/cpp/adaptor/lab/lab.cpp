// The runtime functions, the primitives and every function of the vendor, over memory that the calls bring along.
#include "lab.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <sstream>
#include <stdexcept>

namespace lab {

std::map<std::string, std::string> rules;

namespace {

// The n-th call of its kind fails with a status; 0: none does.
struct Fault {
    int nth = 0;
    int status = 0;
};

std::map<std::string, Fault> faults;
const std::map<std::string, Allocation>* allocations = nullptr;
std::string transcript;

diopiError_t due(const char* kind) {
    const auto found = faults.find(kind);
    if (found == faults.end() || found->second.nth == 0 || --found->second.nth != 0) return diopiSuccess;
    return static_cast<diopiError_t>(found->second.status);
}

// What cannot be asked once cannot be asked again.
diopiError_t asked(const char* kind) {
    const diopiError_t status = due(kind);
    if (status != diopiSuccess) faults[kind].nth = 1;
    return status;
}

void note(const std::string& line) { transcript += line + "\n"; }

std::string failing(diopiError_t status) {
    return status == diopiSuccess ? "" : " fails " + std::to_string(static_cast<int>(status));
}

std::string shown(const std::vector<int64_t>& numbers) {
    std::string text = "[";
    for (size_t i = 0; i < numbers.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(numbers[i]);
    return text + "]";
}

std::string form(diopiDtype_t dtype, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
    return words.at(dtype) + " " + shown(sizes) + " " + shown(strides);
}

std::string hex(const char* bytes, size_t count) {
    static const char digits[] = "0123456789abcdef";
    std::string text;
    for (size_t i = 0; i < count; ++i) {
        text += digits[(bytes[i] >> 4) & 15];
        text += digits[bytes[i] & 15];
    }
    return text;
}

int64_t element_size(diopiDtype_t dtype) {
    switch (dtype) {
        case diopi_dtype_int8:
        case diopi_dtype_uint8:
        case diopi_dtype_bool: return 1;
        case diopi_dtype_int16:
        case diopi_dtype_uint16:
        case diopi_dtype_float16:
        case diopi_dtype_bfloat16: return 2;
        case diopi_dtype_int64:
        case diopi_dtype_uint64:
        case diopi_dtype_float64:
        case diopi_dtype_complex64: return 8;
        case diopi_dtype_complex128: return 16;
        default: return 4;
    }
}

int64_t elements(const diopiTensor& tensor) {
    int64_t product = 1;
    for (const int64_t size : tensor.sizes) product *= size;
    return product;
}

char* place(const diopiTensor& tensor, int64_t index) {
    int64_t offset = tensor.offset;
    for (size_t d = tensor.sizes.size(); d-- > 0; index /= tensor.sizes[d]) {
        offset += index % tensor.sizes[d] * tensor.strides[d];
    }
    const int64_t size = element_size(tensor.dtype);
    if (offset < 0 || (offset + 1) * size > static_cast<int64_t>(tensor.storage->size())) {
        throw std::out_of_range(tensor.name + " reaches outside of its storage");
    }
    return tensor.storage->data() + offset * size;
}

template <typename T>
double number(const char* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return static_cast<double>(value);
}

template <typename T>
void put(char* to, T value) {
    std::memcpy(to, &value, sizeof(T));
}

// Floats of 16 bits: the calls use numbers that they hold exactly.
double short_number(const char* from, int mantissa) {
    uint16_t bits = 0;
    std::memcpy(&bits, from, sizeof(bits));
    const int exponents = (1 << (15 - mantissa)) - 1;
    const int exponent = (bits >> mantissa) & exponents;
    const int fraction = bits & ((1 << mantissa) - 1);
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    const int lowest = 1 - exponents / 2 - mantissa;
    if (exponent == 0) return sign * std::ldexp(fraction, lowest);
    return sign * std::ldexp(fraction + (1 << mantissa), lowest + exponent - 1);
}

void put_short(char* to, double value, int mantissa) {
    uint16_t bits = 0;
    if (value != 0) {
        int exponent = 0;
        const double fraction = std::frexp(std::fabs(value), &exponent);
        const int bias = ((1 << (15 - mantissa)) - 1) / 2;
        bits = static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | ((exponent - 1 + bias) << mantissa) |
                                     (static_cast<int>(std::ldexp(fraction, mantissa + 1)) & ((1 << mantissa) - 1)));
    }
    put(to, bits);
}

std::complex<double> load(const diopiTensor& tensor, int64_t index) {
    const char* from = place(tensor, index);
    switch (tensor.dtype) {
        case diopi_dtype_int8: return number<int8_t>(from);
        case diopi_dtype_uint8:
        case diopi_dtype_bool: return number<uint8_t>(from);
        case diopi_dtype_int16: return number<int16_t>(from);
        case diopi_dtype_uint16: return number<uint16_t>(from);
        case diopi_dtype_int32: return number<int32_t>(from);
        case diopi_dtype_uint32: return number<uint32_t>(from);
        case diopi_dtype_int64: return number<int64_t>(from);
        case diopi_dtype_uint64: return number<uint64_t>(from);
        case diopi_dtype_float16: return short_number(from, 10);
        case diopi_dtype_bfloat16: return short_number(from, 7);
        case diopi_dtype_float64: return number<double>(from);
        case diopi_dtype_complex32: return {short_number(from, 10), short_number(from + 2, 10)};
        case diopi_dtype_complex64: return {number<float>(from), number<float>(from + 4)};
        case diopi_dtype_complex128: return {number<double>(from), number<double>(from + 8)};
        default: return number<float>(from);
    }
}

void store(const diopiTensor& tensor, int64_t index, std::complex<double> value) {
    char* to = place(tensor, index);
    const double real = value.real();
    const int64_t whole = std::fabs(real) < 9e18 ? static_cast<int64_t>(real) : 0;
    switch (tensor.dtype) {
        case diopi_dtype_int8:
        case diopi_dtype_uint8: return put(to, static_cast<uint8_t>(whole));
        case diopi_dtype_bool: return put(to, static_cast<uint8_t>(value != 0.0));
        case diopi_dtype_int16:
        case diopi_dtype_uint16: return put(to, static_cast<uint16_t>(whole));
        case diopi_dtype_int32:
        case diopi_dtype_uint32: return put(to, static_cast<uint32_t>(whole));
        case diopi_dtype_int64:
        case diopi_dtype_uint64: return put(to, whole);
        case diopi_dtype_float16: return put_short(to, real, 10);
        case diopi_dtype_bfloat16: return put_short(to, real, 7);
        case diopi_dtype_float64: return put(to, real);
        case diopi_dtype_complex32: put_short(to, real, 10); return put_short(to + 2, value.imag(), 10);
        case diopi_dtype_complex64:
            put(to, static_cast<float>(real));
            return put(to + 4, static_cast<float>(value.imag()));
        case diopi_dtype_complex128: put(to, real); return put(to + 8, value.imag());
        default: return put(to, static_cast<float>(real));
    }
}

std::vector<std::complex<double>> values(const diopiTensor& tensor) {
    std::vector<std::complex<double>> found;
    for (int64_t i = 0; i < elements(tensor); ++i) found.push_back(load(tensor, i));
    return found;
}

// The elements in logical order.
std::string contents(const diopiTensor& tensor) {
    std::string text;
    for (int64_t i = 0; i < elements(tensor); ++i) text += hex(place(tensor, i), element_size(tensor.dtype));
    return text;
}

void write(const diopiTensor& to, const diopiTensor& from) {
    const std::vector<std::complex<double>> read = values(from);
    for (int64_t i = 0; i < elements(to); ++i) store(to, i, read.at(i));
}

}  // namespace

diopiTensorHandle_t Arguments::tensor(const char* name) const {
    const auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : found->second;
}

diopiTensorHandle_t* Arguments::mutable_list(const char* name) {
    const auto found = lists.find(name);
    return found == lists.end() ? nullptr : found->second.data();
}

diopiConstTensorHandle_t* Arguments::list(const char* name) {
    return const_cast<diopiConstTensorHandle_t*>(reinterpret_cast<const diopiConstTensorHandle_t*>(mutable_list(name)));
}

int64_t Arguments::count(const std::vector<const char*>& names) const {
    int64_t longest = 0;
    for (const char* name : names) {
        const auto found = lists.find(name);
        if (found != lists.end()) longest = std::max(longest, static_cast<int64_t>(found->second.size()));
    }
    return longest;
}

diopiTensorHandle_t* Arguments::result(const char* name) {
    const auto found = results.find(name);
    return found == results.end() ? nullptr : &found->second;
}

Function::Function(diopiContextHandle_t ctx, const char* name) : ctx_(ctx) { note(std::string("call ") + name); }

void Function::absent(const char* name) { note(std::string("  ") + name + " -"); }

void Function::changed(const char* name) { note(std::string("  ") + name + " is another value"); }

void Function::tensor(Use use, const char* name, diopiConstTensorHandle_t tensor) {
    if (tensor == nullptr) return absent(name);
    note(std::string("  ") + name + " " + tensor->name + " " + form(tensor->dtype, tensor->sizes, tensor->strides) +
         " " + contents(*tensor));
    auto* const handle = const_cast<diopiTensorHandle_t>(tensor);
    if (use != Use::out) read_.push_back(values(*tensor));
    if (use == Use::out || use == Use::inout) written_.push_back({handle, name, nullptr});
    if (use == Use::scratch) scratch_.push_back(handle);
}

void Function::allocated(const char* name, diopiTensorHandle_t* tensor) {
    if (tensor == nullptr) return absent(name);
    written_.push_back({nullptr, name, tensor});
}

std::complex<double> Function::sum(int64_t index) const {
    std::complex<double> total = 0;
    for (const auto& tensor : read_) {
        if (!tensor.empty()) total += tensor[index % tensor.size()];
    }
    return total;
}

diopiError_t Function::run() {
    if (const diopiError_t status = due("function"); status != diopiSuccess) return status;
    double place_in_order = 0;
    for (const Written& written : written_) {
        ++place_in_order;
        diopiTensorHandle_t tensor = written.tensor;
        if (written.allocated != nullptr) {
            const Allocation& wanted = allocations->at(written.name);
            if (!wanted.made) continue;
            const diopiSize_t sizes{wanted.sizes.data(), static_cast<int64_t>(wanted.sizes.size())};
            const diopiSize_t strides{wanted.strides.data(), static_cast<int64_t>(wanted.strides.size())};
            const diopiError_t status = diopiRequireTensor(ctx_, &tensor, &sizes, &strides, wanted.dtype, diopi_device);
            if (status != diopiSuccess) return status;
            *written.allocated = tensor;
        }
        for (int64_t i = 0; i < elements(*tensor); ++i) store(*tensor, i, place_in_order + sum(i));
    }
    // As functions may whose inputs the contract leaves mutable.
    for (const diopiTensorHandle_t tensor : scratch_) {
        for (int64_t i = 0; i < elements(*tensor); ++i) store(*tensor, i, 99);
    }
    return diopiSuccess;
}

diopiError_t cast(diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    const diopiError_t status = due("cast");
    note("cast " + input->name + " " + words.at(input->dtype) + " " + out->name + " " + words.at(out->dtype) +
         failing(status));
    if (status == diopiSuccess) write(*out, *input);
    return status;
}

diopiError_t copy(diopiConstTensorHandle_t source, diopiTensorHandle_t target) {
    const diopiError_t status = due("copy");
    note("copy " + source->name + " " + target->name + failing(status));
    if (status == diopiSuccess) write(*target, *source);
    return status;
}

namespace {

std::vector<int64_t> numbers(std::istream& line) {
    size_t count = 0;
    line >> count;
    std::vector<int64_t> found(count);
    for (int64_t& each : found) line >> each;
    return found;
}

// One call: its lines up to "go", and what happens then.
class Reader {
public:
    void line(const std::string& text) {
        std::istringstream words_of(text);
        std::string kind, name;
        words_of >> kind >> name;
        if (kind == "call") function_ = name;
        if (kind == "rule") std::getline(words_of >> std::ws, rules[name]);
        if (kind == "storage") storage(name);
        if (kind == "tensor") tensor(name, words_of);
        if (kind == "arg") arguments_.tensors[name] = handle(words_of);
        if (kind == "list") list(name, words_of);
        if (kind == "result") result(name, words_of);
        if (kind == "fail") words_of >> faults[name].nth >> faults[name].status;
    }

    void go() {
        diopiContext ctx;
        arguments_.ctx = &ctx;
        allocations = &arguments_.allocations;
        const auto before = arguments_.lists;
        const diopiError_t status = functions.at(function_)(arguments_);
        note("status " + std::to_string(static_cast<int>(status)));
        std::string returned;
        for (const auto& each : ctx.temporaries) returned += each->storage == nullptr ? " " + each->name : "";
        if (!returned.empty()) note("returned" + returned);
        if (before != arguments_.lists) note("a list of the caller is changed");
        for (const auto& each : storages_) note("storage " + hex(each->data(), each->size()));
        for (const auto& [name, tensor] : arguments_.results) {
            note("result " + name +
                 (tensor == nullptr ? " -"
                                    : " " + tensor->name + " " + form(tensor->dtype, tensor->sizes, tensor->strides) +
                                          " " + contents(*tensor)));
        }
    }

private:
    void storage(const std::string& digits) {
        storages_.push_back(std::make_shared<std::vector<char>>(digits.size() / 2));
        for (size_t i = 0; i + 1 < digits.size(); i += 2) {
            (*storages_.back())[i / 2] = static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
        }
    }

    void tensor(const std::string& storage, std::istream& line) {
        auto made = std::make_unique<diopiTensor>();
        int dtype = 0, on_host = 0;
        line >> dtype >> on_host >> made->offset;
        made->name = "x" + std::to_string(handles_.size());
        made->dtype = static_cast<diopiDtype_t>(dtype);
        made->device = on_host != 0 ? diopi_host : diopi_device;
        made->sizes = numbers(line);
        made->strides = numbers(line);
        made->storage = storages_.at(std::stoul(storage));
        handles_.push_back(std::move(made));
    }

    diopiTensorHandle_t handle(std::istream& line) {
        int64_t index = -1;
        line >> index;
        return index < 0 ? nullptr : handles_.at(static_cast<size_t>(index)).get();
    }

    void list(const std::string& name, std::istream& line) {
        int64_t count = 0;
        line >> count;
        auto& entries = arguments_.lists[name];
        entries.reserve(1);  // an empty list is a list all the same
        for (int64_t i = 0; i < count; ++i) entries.push_back(handle(line));
    }

    void result(const std::string& name, std::istream& line) {
        Allocation wanted;
        int dtype = 0;
        line >> dtype;
        wanted.made = dtype >= 0;
        wanted.dtype = static_cast<diopiDtype_t>(std::max(dtype, 0));
        wanted.sizes = numbers(line);
        wanted.strides = numbers(line);
        arguments_.allocations[name] = wanted;
        arguments_.results[name] = nullptr;
    }

    std::string function_;
    Arguments arguments_;
    std::vector<std::shared_ptr<std::vector<char>>> storages_;
    std::vector<std::unique_ptr<diopiTensor>> handles_;
};

}  // namespace

}  // namespace lab

extern "C" {

diopiError_t diopiGetTensorDtype(diopiConstTensorHandle_t th, diopiDtype_t* dtype) {
    *dtype = th->dtype;
    return lab::asked("dtype");
}

diopiError_t diopiGetTensorShape(diopiConstTensorHandle_t th, diopiSize_t* size) {
    *size = {th->sizes.data(), static_cast<int64_t>(th->sizes.size())};
    return lab::asked("shape");
}

diopiError_t diopiGetTensorStride(diopiConstTensorHandle_t th, diopiSize_t* stride) {
    *stride = {th->strides.data(), static_cast<int64_t>(th->strides.size())};
    return lab::asked("stride");
}

diopiError_t diopiGetTensorDevice(diopiConstTensorHandle_t th, diopiDevice_t* device) {
    *device = th->device;
    return diopiSuccess;
}

diopiError_t diopiGetTensorNumel(diopiConstTensorHandle_t th, int64_t* numel) {
    *numel = lab::elements(*th);
    return diopiSuccess;
}

diopiError_t diopiGetTensorDataConst(diopiConstTensorHandle_t th, const void** data) {
    *data = th->storage->data() + th->offset * lab::element_size(th->dtype);
    return diopiSuccess;
}

diopiError_t diopiGetTensorData(diopiTensorHandle_t th, void** data) {
    *data = th->storage->data() + th->offset * lab::element_size(th->dtype);
    return diopiSuccess;
}

diopiError_t diopiReturnTensor(diopiContextHandle_t ctx, diopiTensorHandle_t tensor) {
    for (const auto& each : ctx->temporaries) {
        if (each.get() != tensor || each->storage == nullptr) continue;
        each->storage.reset();  // whoever uses it still is found out
        return diopiSuccess;
    }
    lab::note(tensor->name + " is returned, which the context has not");
    return diopiErrorOccurred;
}

diopiError_t diopiGetStream(diopiContextHandle_t, diopiStreamHandle_t* stream) {
    *stream = nullptr;
    return diopiSuccess;
}

diopiError_t diopiRequireTensor(diopiContextHandle_t ctx, diopiTensorHandle_t* tensor, const diopiSize_t* size,
                                const diopiSize_t* stride, const diopiDtype_t dtype, const diopiDevice_t) {
    auto made = std::make_unique<diopiTensor>();
    made->name = "t" + std::to_string(ctx->temporaries.size());
    made->dtype = dtype;
    made->sizes.assign(size->data, size->data + size->len);
    made->strides.assign(stride->data, stride->data + stride->len);
    const diopiError_t status = lab::due("require");
    lab::note("require " + made->name + " " + lab::form(dtype, made->sizes, made->strides) + lab::failing(status));
    if (status != diopiSuccess) return status;
    int64_t last = 0;
    for (size_t d = 0; d < made->sizes.size(); ++d) {
        last += made->sizes[d] == 0 ? 0 : (made->sizes[d] - 1) * made->strides[d];
    }
    // Whoever forgets to fill a temporary reads this.
    made->storage = std::make_shared<std::vector<char>>((last + 1) * lab::element_size(dtype), 0x2b);
    *tensor = made.get();
    ctx->temporaries.push_back(std::move(made));
    return diopiSuccess;
}

}  // extern "C"

// Reads calls until the input ends; answers each with what happened, and a line "end".
int main() {
    std::ios::sync_with_stdio(false);
    auto reader = std::make_unique<lab::Reader>();
    for (std::string line; std::getline(std::cin, line);) {
        if (line != "go") {
            reader->line(line);
            continue;
        }
        reader->go();
        std::cout << lab::transcript << "end\n" << std::flush;
        lab::transcript.clear();
        lab::rules.clear();
        lab::faults.clear();
        reader = std::make_unique<lab::Reader>();
    }
    return 0;
}
