/** What tensors need from above. Importing this file provides it. */

import { GraphError } from "../errors.ts";
import { call } from "../dispatch/call.ts";
import { lookup } from "../ops/op.ts";
import { keep } from "../session/scopes.ts";
import { Tensor, provide } from "../tensor/tensor.ts";
import { backward, infoOf } from "./backward.ts";

provide({
  backward,
  gradOf(leaf) {
    const counter = leaf.session.record(lookup("grad_of"), [leaf, null], 1);
    return new Tensor(leaf.session, counter, infoOf(leaf));
  },
  setGrad(leaf, gradient) {
    if (gradient && gradient.shape && leaf.shape && gradient.shape.join() !== leaf.shape.join()) {
      throw new GraphError(`the assigned gradient ${gradient} has another shape than ${leaf}`);
    }
    leaf.session.record(lookup("set_grad"), [leaf, gradient], 0);
  },
  requireGrad(leaf, wanted) {
    leaf.session.record(lookup("requires_grad_"), [leaf, wanted], 0);
  },
  retainGrad(tensor) {
    tensor.session.record(lookup("retain_grad"), [tensor], 0);
  },
  detach(tensor) {
    return call(lookup("detach"), [tensor])[0]!;
  },
  placeOf(tensor) {
    const counter = tensor.session.record(lookup("place_of"), [tensor], 1);
    return keep(new Tensor(tensor.session, counter, { dtype: tensor.dtype, shape: [0] }));
  },
  setName(tensor, name) {
    tensor.session.record(lookup("set_name"), [tensor, name], 0);
  },
});
