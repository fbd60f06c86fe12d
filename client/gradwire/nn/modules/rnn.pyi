# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.recurrent import GRU as GRU, GRUCell as GRUCell, LSTM as LSTM, LSTMCell as LSTMCell, RNN as RNN, RNNBase as RNNBase, RNNCell as RNNCell, RNNCellBase as RNNCellBase

