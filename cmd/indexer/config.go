package main

import (
	"go.yaml.in/yaml/v3"

	"ledgerindexer/internal/config"
)

// configCommand takes the flags of run. None is required.
type configCommand struct {
	Of daemonFlags `embed:""`
	jsonFlag
}

// Run prints the settings as a configuration file, in which comments say where they come from.
func (c *configCommand) Run(settings config.Settings, out config.Output) error {
	if c.JSON {
		return writeReport(out, settings)
	}
	file := yaml.Node{Kind: yaml.MappingNode}
	for _, s := range settings {
		var value yaml.Node
		if err := value.Encode(s.Value); err != nil {
			return err
		}
		if value.Kind == yaml.SequenceNode {
			value.Style = yaml.FlowStyle
		}
		value.LineComment = s.From
		file.Content = append(file.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: s.Name}, &value)
	}
	text, err := yaml.Marshal(&file)
	if err != nil {
		return err
	}
	_, err = out.Write(printableJSON(text))
	return err
}
