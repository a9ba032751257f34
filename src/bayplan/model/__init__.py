"""The language of the house: ids, quantities, resources, Kubernetes objects, selectors, time and errors. All pure.

errors clock ids durations ages                  what everything else stands on
quantity resources qos                           how much
meta pods nodes workloads policies objects       what is read from the wire (`objects.decode`)
taints affinity                                  parts of pods and nodes
label_rules selectors selector_text              which objects, by labels
field_selectors node_selectors                   which objects, by fields; which nodes
"""
