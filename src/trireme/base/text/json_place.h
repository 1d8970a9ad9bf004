// Where in a JSON text a value stands, for errors that name the line.
#pragma once
#include <cstddef>
#include <string_view>

namespace trireme {

// The line, from 1, in which the value at a JSON pointer ("/layers/3/name") begins; for a member of an object, its key.
// Where there is no such value, that of the innermost one around it that there is. `text` is valid JSON; of other texts
// the result is some line of it.
std::size_t json_line(std::string_view text, std::string_view pointer);

}  // namespace trireme
