// What torch's FlightRecorderDetail.hpp names of a library that wheels of torch do not have. Its function for JSON, which alone
// needs it, is a template that is never instantiated here: these are declared and never defined.
#pragma once

#include <string>

namespace nlohmann {

class json {
public:
    json();
    template <class Value>
    json(const Value& value);  // NOLINT(google-explicit-constructor)
    template <class Value>
    json& operator=(const Value& value);
    json& operator[](const std::string& key);
    std::string dump() const;
};

}  // namespace nlohmann
