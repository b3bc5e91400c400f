"""The figures of the papers that colltune is compared with, drawn from any tables of measurements.

FACT: Wilkins et al., ExaMPI 2021. ACCLAiM: Wilkins et al., 2025. Each figure is one function of a Study.
"""
