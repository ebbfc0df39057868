#include <keel/layers/internal/activity_loss_scale.h>

#include <utility>

namespace keel {
namespace {

thread_local double current_scale = 1;

}  // namespace

ActivityLossScale::ActivityLossScale(double scale)
    : previous_(std::exchange(current_scale, scale)) {}
ActivityLossScale::~ActivityLossScale() { current_scale = previous_; }
double ActivityLossScale::current() { return current_scale; }

}  // namespace keel
