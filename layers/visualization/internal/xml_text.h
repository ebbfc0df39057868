// Escaping of text in XML, for SVG images and Graphviz labels.
#pragma once

#include <string>

namespace keel {

// Returns `text` with the five reserved characters of XML replaced by entities.
std::string xml_escaped(const std::string& text);

}  // namespace keel
