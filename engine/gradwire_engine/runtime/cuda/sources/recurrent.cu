// Recurrent layers: what is elementwise in a step, and its derivative. T is the element type.
//
// A thread takes one unit of one sequence; blockIdx.y goes through the sequences of a step. Arrays of all steps are
// given whole, with `start`, the step's first row; arrays of states have a row per sequence. A derivative needs the
// state before the step: the first `going` sequences have it from row `origin` on, the others in the layer's first.
// It is copied to `before`, by which the weights' gradients are one product.
typedef Wide<T>::type A;

__device__ __forceinline__ A at(const T* x, i64 i) { return x ? (A)widen(x[i]) : (A)0; }
__device__ __forceinline__ A sigmoid(A x) { return (A)0.5 + (A)0.5 * tanh((A)0.5 * x); }

#define FOR_EACH_UNIT(row) \
    const i64 unit = (i64)blockIdx.x * blockDim.x + threadIdx.x; \
    if (unit >= hidden) return; \
    for (i64 row = blockIdx.y; row < batch; row += gridDim.y)

__device__ __forceinline__ A earlier(
    const T* all, const T* first, i64 row, i64 unit, i64 origin, i64 going, i64 hidden
) {
    return widen(row < going ? all[(origin + row) * hidden + unit] : first[row * hidden + unit]);
}

// `gates` holds the inputs' part, and gets the gates: enters, stays, candidate, shows.
extern "C" __global__ void lstm_step(
    T* gates, const T* product, const T* b_ih, const T* b_hh, T* state, T* cell, T* states, T* cells,
    i64 start, i64 batch, i64 hidden
) {
    FOR_EACH_UNIT(row) {
        T* const gate = gates + (start + row) * 4 * hidden + unit;
        const T* const made = product + row * 4 * hidden + unit;
        A given[4];
        for (int k = 0; k < 4; ++k) {
            const i64 i = k * hidden;
            given[k] = widen(gate[i]) + at(b_ih, i + unit) + at(b_hh, i + unit) + widen(made[i]);
        }
        const A enters = sigmoid(given[0]), stays = sigmoid(given[1]), candidate = tanh(given[2]);
        const A shows = sigmoid(given[3]);
        const i64 own = row * hidden + unit, place = (start + row) * hidden + unit;
        const A c = widen(cell[own]) * stays + enters * candidate;
        const T h = narrow<T>(tanh(c) * shows);
        gate[0] = narrow<T>(enters);
        gate[hidden] = narrow<T>(stays);
        gate[2 * hidden] = narrow<T>(candidate);
        gate[3 * hidden] = narrow<T>(shows);
        cell[own] = cells[place] = narrow<T>(c);
        state[own] = states[place] = h;
    }
}

extern "C" __global__ void lstm_step_backward(
    const T* g, const T* g_cells, const T* gates, const T* states, const T* cells, const T* hx, const T* cx,
    const T* d_state, T* d_cell, T* d_gates, T* before,
    i64 start, i64 origin, i64 going, i64 batch, i64 hidden
) {
    FOR_EACH_UNIT(row) {
        const i64 own = row * hidden + unit, place = (start + row) * hidden + unit;
        const i64 first = (start + row) * 4 * hidden + unit;
        const A enters = widen(gates[first]), stays = widen(gates[first + hidden]);
        const A candidate = widen(gates[first + 2 * hidden]), shows = widen(gates[first + 3 * hidden]);
        const A bent = tanh((A)widen(cells[place])), d_out = widen(d_state[own]) + at(g, place);
        const A was = earlier(cells, cx, row, unit, origin, going, hidden);
        const A d_c = widen(d_cell[own]) + shows * (1 - bent * bent) * d_out + at(g_cells, place);
        d_gates[first] = narrow<T>(enters * (1 - enters) * candidate * d_c);
        d_gates[first + hidden] = narrow<T>(stays * (1 - stays) * was * d_c);
        d_gates[first + 2 * hidden] = narrow<T>((1 - candidate * candidate) * enters * d_c);
        d_gates[first + 3 * hidden] = narrow<T>(shows * (1 - shows) * bent * d_out);
        d_cell[own] = narrow<T>(d_c * stays);
        before[place] = narrow<T>(earlier(states, hx, row, unit, origin, going, hidden));
    }
}

// `gates` holds the inputs' part, and gets the gates: reset, update, candidate. `of_states` gets the states' part of
// the candidate.
extern "C" __global__ void gru_step(
    T* gates, const T* product, const T* b_ih, const T* b_hh, T* state, T* states, T* of_states,
    i64 start, i64 batch, i64 hidden
) {
    FOR_EACH_UNIT(row) {
        T* const gate = gates + (start + row) * 3 * hidden + unit;
        const T* const made = product + row * 3 * hidden + unit;
        A input[3], recurrent[3];
        for (int k = 0; k < 3; ++k) {
            const i64 i = k * hidden;
            input[k] = widen(gate[i]) + at(b_ih, i + unit);
            recurrent[k] = widen(made[i]) + at(b_hh, i + unit);
        }
        const A reset = sigmoid(input[0] + recurrent[0]), update = sigmoid(input[1] + recurrent[1]);
        const A fresh = tanh(input[2] + reset * recurrent[2]);
        const i64 own = row * hidden + unit, place = (start + row) * hidden + unit;
        gate[0] = narrow<T>(reset);
        gate[hidden] = narrow<T>(update);
        gate[2 * hidden] = narrow<T>(fresh);
        of_states[place] = narrow<T>(recurrent[2]);
        state[own] = states[place] = narrow<T>((widen(state[own]) - fresh) * update + fresh);
    }
}

// The gradient of a state comes in two parts, `past` the product and `beside` it. `d_inputs` differs from `d_gates` in
// the candidate.
extern "C" __global__ void gru_step_backward(
    const T* g, const T* gates, const T* states, const T* of_states, const T* hx, const T* past, T* beside,
    T* d_gates, T* d_inputs, T* before, i64 start, i64 origin, i64 going, i64 batch, i64 hidden
) {
    FOR_EACH_UNIT(row) {
        const i64 own = row * hidden + unit, place = (start + row) * hidden + unit;
        const i64 first = (start + row) * 3 * hidden + unit;
        const A reset = widen(gates[first]), update = widen(gates[first + hidden]);
        const A fresh = widen(gates[first + 2 * hidden]);
        const A was = earlier(states, hx, row, unit, origin, going, hidden);
        const A d_h = widen(past[own]) + widen(beside[own]) + at(g, place);
        const A d_fresh = (1 - update) * (1 - fresh * fresh) * d_h;
        d_gates[first] = d_inputs[first] = narrow<T>(d_fresh * widen(of_states[place]) * (reset * (1 - reset)));
        d_gates[first + hidden] = d_inputs[first + hidden] = narrow<T>((was - fresh) * update * (1 - update) * d_h);
        d_gates[first + 2 * hidden] = narrow<T>(d_fresh * reset);
        d_inputs[first + 2 * hidden] = narrow<T>(d_fresh);
        beside[own] = narrow<T>(d_h * update);
        before[place] = narrow<T>(was);
    }
}

// `states` holds the inputs' part, and gets the states.
extern "C" __global__ void rnn_step(
    T* states, const T* product, const T* b_ih, const T* b_hh, T* state, int relu, i64 start, i64 batch, i64 hidden
) {
    FOR_EACH_UNIT(row) {
        const i64 own = row * hidden + unit, place = (start + row) * hidden + unit;
        const A given = widen(states[place]) + at(b_ih, unit) + at(b_hh, unit) + widen(product[own]);
        state[own] = states[place] = narrow<T>(relu ? larger(given, (A)0) : (A)tanh(given));
    }
}

extern "C" __global__ void rnn_step_backward(
    const T* g, const T* states, const T* hx, const T* d_state, T* d_gates, T* before, int relu,
    i64 start, i64 origin, i64 going, i64 batch, i64 hidden
) {
    FOR_EACH_UNIT(row) {
        const i64 place = (start + row) * hidden + unit;
        const A h = widen(states[place]), d_h = widen(d_state[row * hidden + unit]) + at(g, place);
        d_gates[place] = narrow<T>((relu ? (A)(h > 0) : 1 - h * h) * d_h);
        before[place] = narrow<T>(earlier(states, hx, row, unit, origin, going, hidden));
    }
}
