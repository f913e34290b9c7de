// SPDX-License-Identifier: Apache-2.0
//
// Computes decision tree ensembles (ai.onnx.ml TreeEnsembleClassifier, TreeEnsembleRegressor and
// TreeEnsemble): each row of x descends every tree to a leaf, whose votes (a target and a weight
// each) are aggregated per target.
//
// Parameters
//   P_T     dtype of x, see common/number.clh; P_VEC is 1
//   P_W     dtype of values: 1 float, 11 double
//   P_HOW   aggregation of the weights of a target: 0 sum, 1 mean over the trees, 2 min, 3 max.
//           A target without votes gets 0 for min and max
//
// tree_walk: aggregates the votes of a row in a block of trees. NDRange: rows * blocks, or smaller.
//   x             [rows, features]
//   nodes         int [nodes, 4]. A node is: feature; the relations of feature and value for which
//                 the true branch is taken, as bits (see relation()); nodes for true and false. A
//                 leaf is: unused; LEAF; the index of its first vote; their count
//   values        [nodes]: what the feature is compared with. A NaN is unordered
//   roots         int [trees]: the root nodes
//   vote_ids      int [votes]: the targets
//   vote_weights  float [votes]
//   part          float [rows, blocks, targets]: the result
//   rows, features, trees, targets, blocks
//   per_block     trees in a block
// tree_finish: aggregates the blocks of a row and adds base. NDRange: rows * targets, or smaller.
//   part          from tree_walk
//   base          float [targets]
//   y             float [rows, targets]
//   rows, trees, targets, blocks
// Local memory: none.
//
// @variant P_T=1 P_W=1 P_HOW=0 P_VEC=1
// @variant P_T=11 P_W=11 P_HOW=1 P_VEC=1
// @variant P_T=7 P_W=1 P_HOW=2 P_VEC=1
// @variant P_T=6 P_W=1 P_HOW=3 P_VEC=1
#include "common/number.clh"

typedef CAT(ELEM_, P_W) value;

#if P_HOW == 2
#define NOTHING INFINITY
#define VOTE(a, b) fmin(a, b)
#elif P_HOW == 3
#define NOTHING (-INFINITY)
#define VOTE(a, b) fmax(a, b)
#else
#define NOTHING 0.0f
#define VOTE(a, b) ((a) + (b))
#endif

#define LEAF 16

// Returns the relation of x to y as a bit: 1 less, 2 equal, 4 greater, 8 unordered.
static inline int relation(const value x, const value y)
{
    return x < y ? 1 : x == y ? 2 : x > y ? 4 : 8;
}

__kernel void tree_walk(__global const elem *x, const long x_off, __global const int *nodes,
                        const long nodes_off, __global const value *values, const long values_off,
                        __global const int *roots, const long roots_off,
                        __global const int *vote_ids, const long ids_off,
                        __global const float *vote_weights, const long weights_off,
                        __global float *part, const long part_off, const int rows,
                        const int features, const int trees, const int targets, const int blocks,
                        const int per_block)
{
    x += x_off;
    nodes += nodes_off;
    values += values_off;
    roots += roots_off;
    vote_ids += ids_off;
    vote_weights += weights_off;
    part += part_off;
    for (long at = get_global_id(0); at < (long)rows * blocks; at += get_global_size(0)) {
        const long row = at / blocks;
        const int first = (int)(at % blocks) * per_block;
        const int last = min(first + per_block, trees);
        __global const elem *features_of = x + row * features;
        __global float *sums = part + at * targets;
        for (int i = 0; i < targets; i++) sums[i] = NOTHING;
        for (int tree = first; tree < last; tree++) {
            int n = roots[tree];
            int4 node = vload4(n, nodes);
            // Any node without relation bits ends the loop, so that it also terminates on buffers
            // of zeros, on which compile helpers run kernels (decision 36).
            while (node.y & (LEAF - 1)) {
                n = node.y & relation((value)LOAD1(features_of + node.x), values[n]) ? node.z
                                                                                     : node.w;
                node = vload4(n, nodes);
            }
            for (int v = node.z; v < node.z + node.w; v++)
                sums[vote_ids[v]] = VOTE(sums[vote_ids[v]], vote_weights[v]);
        }
    }
}

__kernel void tree_finish(__global const float *part, const long part_off,
                          __global const float *base, const long base_off, __global float *y,
                          const long y_off, const int rows, const int trees, const int targets,
                          const int blocks)
{
    for (long at = get_global_id(0); at < (long)rows * targets; at += get_global_size(0)) {
        const long row = at / targets;
        const int target = (int)(at % targets);
        __global const float *from = part + part_off + row * blocks * targets + target;
        float sum = NOTHING;
        for (int b = 0; b < blocks; b++) sum = VOTE(sum, from[(long)b * targets]);
#if P_HOW == 1
        sum /= (float)trees;
#elif P_HOW > 1
        if (sum == NOTHING) sum = 0.0f;
#endif
        y[y_off + at] = sum + base[base_off + target];
    }
}
