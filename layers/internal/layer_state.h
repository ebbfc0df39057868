// The state of a layer and of all layers in it, by path.
#pragma once

#include <functional>
#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Calls fn(path, entry) for each state entry of `root`, then of its sublayers in the order they
// were tracked, depth first; a layer reached twice counts once, at the first place.
//
// The path is "<layer>/<layer>/.../<entry name>" from root, which is not in it. A layer goes by
// its class name in snake case; the second, third, ... of a class among the sublayers of one
// parent by that with "_1", "_2", ... So paths follow from the structure alone: models built by
// the same code have the same, whatever names their layers were given.
void for_each_state_entry(
    const Layer& root,
    const std::function<void(const std::string& path, const StateEntry& entry)>& fn);

}  // namespace keel
