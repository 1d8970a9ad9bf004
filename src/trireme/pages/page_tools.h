// What the scripts of generated pages share.
#pragma once

namespace trireme {

// JavaScript: el(name, attributes, ...children) makes an element, svg(…) one of a drawing. To be put behind a script,
// which begins with its own 'use strict'; functions are there from the start.
extern const char kPageTools[];

}  // namespace trireme
