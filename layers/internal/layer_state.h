// Enumerates the state of a layer and of all layers inside it, by path.
#pragma once

#include <string>

#include <keel/framework/base/function_ref.h>
#include <keel/layers/layer.h>

namespace keel {

// Calls fn(path, entry) for each state entry of `root`, then for the entries of its sublayers in
// the order in which they were tracked, depth first. A layer that is reached twice is visited only
// the first time.
//
// The path has the form "<layer>/<layer>/.../<entry name>", without `root` itself. A
// layer is named after its class in snake case. If a parent has several sublayers of one class, the
// second and later ones get the suffixes "_1", "_2", ... Paths thus depend on the structure alone:
// models built by the same code have equal paths, whatever their layers are named.
void for_each_state_entry(const Layer& root,
                          FunctionRef<void(const std::string& path, const StateEntry& entry)> fn);

}  // namespace keel
