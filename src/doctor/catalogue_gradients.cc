// Mistakes in the backward pass alone.
#include "doctor/catalogue.h"

namespace glasshead::doctor {
namespace {

bool has_gradients(const Program& p) { return p.d_out != nullptr; }

const Fault kFaults[] = {
    {"gradient-layout",
     {"HOW", "d_out read in another memory order",
      "the gradient of out has out's shape and another order of axes in memory",
      "kernel(d_out.data_ptr(), out.stride())", "kernel(d_out.data_ptr(), d_out.stride())",
      "pass d_out's own strides"},
     [](const Program& p) {
       if (!has_gradients(p) || p.q->extent(1) < 2 || p.q->extent(2) < 2) return Choices{};
       return Choices{{0, "as-heads-first"}, {1, "as-length-first"}};
     },
     [](Program& p, const Choice& choice) {
       p.d_out_order =
           choice.value == 0 ? Misread{Order::lhd, Order::hld} : Misread{Order::hld, Order::lhd};
       return has_gradients(p);
     }},
    {"gradient-scale-missing",
     {"", "scale forgotten in the backward pass", "dq and dk are not multiplied by the scale",
      "dq = ds @ k", "dq = ds @ k * scale", "the product was scaled, so is its gradient"},
     [](const Program& p) { return once(has_gradients(p) && p.scale != 1 && p.scale != 0); },
     [](Program& p, const Choice&) {
       if (p.scale == 0) return false;
       p.gradient_scale /= p.scale;
       return has_gradients(p);
     }},
    {"gradient-scale-twice",
     {"", "scale applied twice in the backward pass", "dq and dk are multiplied by its square",
      "ds = ds * scale; dq = ds @ k * scale", "dq = ds @ k * scale", "once"},
     [](const Program& p) { return once(has_gradients(p) && p.scale != 1); },
     [](Program& p, const Choice&) {
       p.gradient_scale *= p.scale;
       return has_gradients(p);
     }},
    {"gradient-mean-missing",
     {"", "softmax's gradient without its mean", "ds = w dw, without subtracting sum of w dw",
      "ds = p * dp", "ds = p * (dp - (p * dp).sum(-1, keepdims=True))",
      "the weights of a row add to 1, so their changes add to 0"},
     [](const Program& p) { return once(has_gradients(p)); },
     [](Program& p, const Choice&) {
       p.forgets_mean = true;
       return has_gradients(p);
     }},
    {"gradient-softcap-missing",
     {"", "softcap forgotten in the backward pass", "the slope of tanh is taken for 1",
      "dq = ds @ k * scale", "ds *= 1 - (s / cap) ** 2", "differentiate the cap too"},
     [](const Program& p) { return once(has_gradients(p) && p.options.softcap > 0); },
     [](Program& p, const Choice&) {
       p.forgets_cap_slope = true;
       return has_gradients(p) && p.options.softcap > 0;
     }},
    {"gradient-heads-not-summed",
     {"", "dk and dv of one head only",
      "of the query heads that share a key/value head, the last one's gradient is kept",
      "dk[g] = ds.T @ q", "dk[g] += ds.T @ q", "sum over the heads that share it"},
     [](const Program& p) { return once(has_gradients(p) && p.group() > 1); },
     [](Program& p, const Choice&) {
       p.keeps_last_head = true;
       return has_gradients(p) && p.group() > 1;
     }},
};

}  // namespace

std::span<const Fault> gradient_faults() { return kFaults; }

}  // namespace glasshead::doctor
