// A runtime and a vendor that write down everything that reaches them; calls come as text, and go as text.
#pragma once

#include <diopi/diopirt.h>
#include <diopi/diopirt_ext.h>

#include <complex>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

struct diopiTensor {
    std::string name;  // e.g. "x0" for the caller's, "t0" for those of diopiRequireTensor
    diopiDtype_t dtype = diopi_dtype_float32;
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    int64_t offset = 0;  // in elements
    diopiDevice_t device = diopi_device;
    std::shared_ptr<std::vector<char>> storage;
};

struct diopiContext {
    std::vector<std::unique_ptr<diopiTensor>> temporaries;
};

namespace lab {

enum class Use { in, scratch, out, inout };  // scratch: an input whose handle is mutable

// What a function allocates for one parameter.
struct Allocation {
    diopiDtype_t dtype = diopi_dtype_float32;
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    bool made = true;
};

// One call as the text has it: the arguments by the names of the parameters.
struct Arguments {
    diopiContextHandle_t ctx = nullptr;
    std::map<std::string, diopiTensorHandle_t> tensors;
    std::map<std::string, std::vector<diopiTensorHandle_t>> lists;  // a parameter that is not here is a null list
    std::map<std::string, diopiTensorHandle_t> results;             // where allocated tensors go
    std::map<std::string, Allocation> allocations;

    diopiTensorHandle_t tensor(const char* name) const;
    diopiTensorHandle_t* mutable_list(const char* name);
    diopiConstTensorHandle_t* list(const char* name);
    int64_t count(const std::vector<const char*>& names) const;  // of the lists that one count speaks of
    diopiTensorHandle_t* result(const char* name);
};

// What the function was given, tensor by tensor; then what it does with it.
class Function {
public:
    Function(diopiContextHandle_t ctx, const char* name);

    void tensor(Use use, const char* name, diopiConstTensorHandle_t tensor);
    template <typename Handle>
    void list(Use use, const char* name, Handle* tensors, int64_t count) {
        if (tensors == nullptr) return absent(name);
        for (int64_t i = 0; i < count; ++i) {
            tensor(use, (name + ("[" + std::to_string(i) + "]")).c_str(), tensors[i]);
        }
    }
    void allocated(const char* name, diopiTensorHandle_t* tensor);
    template <typename T>
    void value(const char* name, const T& given, const T& expected) {
        if constexpr (std::is_same_v<T, diopiSize_t>) {
            if (given.data != expected.data || given.len != expected.len) changed(name);
        } else {
            if (given != expected) changed(name);
        }
    }

    // Fails if it is due to; else writes k + 1 plus the sum of all that it reads to the k-th tensor that it writes.
    diopiError_t run();

private:
    struct Written {
        diopiTensorHandle_t tensor;
        std::string name;                // of an allocated one
        diopiTensorHandle_t* allocated;
    };

    void absent(const char* name);
    void changed(const char* name);
    std::complex<double> sum(int64_t index) const;

    diopiContextHandle_t ctx_;
    std::vector<std::vector<std::complex<double>>> read_;
    std::vector<Written> written_;
    std::vector<diopiTensorHandle_t> scratch_;
};

// The argument that stands for the `index`-th parameter that is no tensor.
template <typename T>
T value(int index) {
    static int64_t room[16];
    if constexpr (std::is_same_v<T, diopiSize_t>) {
        return {room + index, 2};
    } else if constexpr (std::is_pointer_v<T>) {
        return reinterpret_cast<T>(room + index);
    } else {
        return static_cast<T>(index + 1);
    }
}

using Invoke = std::function<diopiError_t(Arguments&)>;

// Generated with the vendor: every function of the contract, and the words of the dtypes by their values.
extern const std::map<std::string, Invoke> functions;
extern const std::vector<std::string> words;

// The call's rule of each parameter as text, e.g. "cast float64 float32 order 4 channels_last contiguous".
extern std::map<std::string, std::string> rules;

diopiError_t cast(diopiTensorHandle_t out, diopiConstTensorHandle_t input);
diopiError_t copy(diopiConstTensorHandle_t source, diopiTensorHandle_t target);

}  // namespace lab
