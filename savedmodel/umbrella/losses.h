// All losses, and Loss, the base class for your own losses.
#pragma once

#include <keel/layers/losses/crossentropy.h>
#include <keel/layers/losses/focal.h>
#include <keel/layers/losses/hinge.h>
#include <keel/layers/losses/list_mle.h>
#include <keel/layers/losses/loss.h>
#include <keel/layers/losses/overlap.h>
#include <keel/layers/losses/pairwise.h>
#include <keel/layers/losses/probabilistic.h>
#include <keel/layers/losses/regression.h>
#include <keel/layers/losses/similarity.h>
