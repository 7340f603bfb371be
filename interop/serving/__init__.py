"""Model servers with models of TensorFlow: the answers must be those that TensorFlow computed."""
