// A number that the host computes with between the steps of a composition.
#pragma once

#include <diopi/diopirt.h>

#include <cmath>
#include <cstdint>

#include "dtypes.h"

namespace diopi::composite {

// Whole or a fraction, as a diopiScalar_t is; only a division or a fraction makes a fraction.
class Number {
public:
    Number(int value) : Number(int64_t{value}) {}
    Number(int64_t value) : whole_(true), integer_(value), real_(static_cast<double>(value)) { fill(); }
    Number(double value) : whole_(false), integer_(static_cast<int64_t>(value)), real_(value) { fill(); }
    Number(bool value) : Number(static_cast<int64_t>(value)) {}
    Number(const diopiScalar_t* value) : Number(!is_float(value->stype) ? Number(value->ival) : Number(value->fval)) {}

    bool whole() const { return whole_; }
    int64_t integer() const { return integer_; }
    double real() const { return real_; }
    // Valid as long as the number is.
    const diopiScalar_t* scalar() const { return &scalar_; }

private:
    void fill() {
        scalar_.stype = whole_ ? diopi_dtype_int64 : diopi_dtype_float64;
        if (whole_) {
            scalar_.ival = integer_;
        } else {
            scalar_.fval = real_;
        }
    }

    bool whole_;
    int64_t integer_;
    double real_;
    diopiScalar_t scalar_;
};

inline Number operator-(const Number& a) { return a.whole() ? Number(-a.integer()) : Number(-a.real()); }
inline Number operator+(const Number& a, const Number& b) {
    return a.whole() && b.whole() ? Number(a.integer() + b.integer()) : Number(a.real() + b.real());
}
inline Number operator-(const Number& a, const Number& b) {
    return a.whole() && b.whole() ? Number(a.integer() - b.integer()) : Number(a.real() - b.real());
}
inline Number operator*(const Number& a, const Number& b) {
    return a.whole() && b.whole() ? Number(a.integer() * b.integer()) : Number(a.real() * b.real());
}
inline Number operator/(const Number& a, const Number& b) { return a.real() / b.real(); }

inline bool operator==(const Number& a, const Number& b) { return a.real() == b.real(); }
inline bool operator!=(const Number& a, const Number& b) { return a.real() != b.real(); }
inline bool operator<(const Number& a, const Number& b) { return a.real() < b.real(); }
inline bool operator<=(const Number& a, const Number& b) { return a.real() <= b.real(); }
inline bool operator>(const Number& a, const Number& b) { return a.real() > b.real(); }
inline bool operator>=(const Number& a, const Number& b) { return a.real() >= b.real(); }

inline Number abs(const Number& a) { return a < Number(0) ? -a : a; }
inline Number sqrt(const Number& a) { return std::sqrt(a.real()); }
inline Number pow(const Number& a, const Number& b) { return std::pow(a.real(), b.real()); }
inline Number min(const Number& a, const Number& b) { return b < a ? b : a; }
inline Number max(const Number& a, const Number& b) { return b > a ? b : a; }

}  // namespace diopi::composite
