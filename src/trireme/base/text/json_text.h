// JSON that people write or hand in, read strictly.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace trireme {

// The value, its keys in the order of the text. Throws DataError, one line with file and line, where the text is no
// JSON, where a number is more than a double holds, where an object has a key twice, and beyond 100 levels of lists and
// objects. `hint` follows where it is no JSON.
nlohmann::ordered_json parse_json(std::string_view text, std::string_view file, std::string_view hint = "");

}  // namespace trireme
