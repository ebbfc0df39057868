// All losses, and Loss, the base class for your own losses.
#pragma once

#include <keel/layers/losses/crossentropy.h>
#include <keel/layers/losses/ctc.h>
#include <keel/layers/losses/formula_loss.h>
#include <keel/layers/losses/loss.h>
#include <keel/layers/losses/margin.h>
#include <keel/layers/losses/probabilistic.h>
#include <keel/layers/losses/ranking.h>
#include <keel/layers/losses/regression.h>
