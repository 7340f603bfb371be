# What sync_replicas.py calls to write the model of a session.
import tensorflow as tf


def save(sess, export_dir, signature_def_map):
    builder = tf.saved_model.builder.SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(sess, ["serve"], signature_def_map=signature_def_map)
    builder.save()
